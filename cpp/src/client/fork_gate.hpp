/// Brings the client's calls and connections out of gRPC before the process forks.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <set>

namespace rl4sys::client {

/// A connection that ends for a fork and is made again after it.
class ForkedConnection {
public:
    /// Cancel its calls.
    virtual void interrupt() noexcept = 0;
    /// Release what it has of gRPC; none of its calls is under way.
    virtual void release() noexcept = 0;
    /// Connect again, in the process that forked.
    virtual void restore() noexcept = 0;

protected:
    ~ForkedConnection() = default;
};

/// Calls pass this gate: a fork interrupts those under way, and others wait until it is done.
class ForkGate {
public:
    /// Enter, after a fork that is under way; returns how many there were.
    std::size_t enter();
    void leave();
    std::size_t forks() const { return forks_; }

    void add(ForkedConnection& connection);
    void remove(ForkedConnection& connection);

    /// Close the gate for a fork and release all connections; returns false, and releases none, if a call does not end.
    bool close();
    /// Restore the connections and open the gate, in the process that closed it.
    void open();

private:
    std::mutex mutex_;  ///< Held from `close` to `open`: another fork waits for that.
    std::condition_variable changed_;
    std::atomic<std::size_t> forks_ = 0;
    bool is_closed_ = false;
    bool is_released_ = false;
    std::size_t inside_ = 0;
    std::set<ForkedConnection*> connections_;
};

/// The gate of this process.
ForkGate& fork_gate() noexcept;

/// Leave the gate to the parent, in a child, which gets its own.
void replace_fork_gate();

/// A call, from before it begins until nothing of it is left.
class InsideGate {
public:
    InsideGate();
    ~InsideGate();
    InsideGate(const InsideGate&) = delete;
    InsideGate& operator=(const InsideGate&) = delete;

    /// Whether a fork interrupts the call.
    bool is_interrupted() const { return fork_gate().forks() != forks_; }

private:
    std::size_t forks_;
};

}  // namespace rl4sys::client
