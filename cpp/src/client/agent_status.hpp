/// What the threads of an agent tell each other and the user: counts, and the state of the connection.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace rl4sys::client {

/// The threads that talk to the server.
enum class Caller { Courier, Watcher };

/// Counters that any thread may add to, and the last word on the connection.
class AgentStatus {
public:
    std::atomic<std::uint64_t> late_rewards = 0;
    std::atomic<std::uint64_t> fallback_decisions = 0;
    std::atomic<std::uint64_t> damaged_patches = 0;

    /// Count what will never be sent; true the first time, when it is worth telling the user.
    bool drop(const std::string& reason, std::uint64_t count = 1);
    std::map<std::string, std::uint64_t> drops() const;

    bool connected() const;
    std::string last_error() const;
    /// Why nothing is sent or received at present; nothing while it is.
    std::optional<std::string> stopped() const;

    /// A call of the thread `caller` ended in OK.
    void succeeded(Caller caller);
    /// A call failed, and will be made again.
    void failed(const std::string& error);
    /// A call of the thread `caller` failed, and will until somebody repairs the cause.
    void refused(Caller caller, const std::string& error);
    /// A background thread ended by an error.
    void died(const std::string& name, const std::string& error);
    /// Something went wrong that is no failure of the connection.
    void note(const std::string& error);
    /// True once.
    bool first_refusal();

private:
    mutable std::mutex mutex_;
    std::map<std::string, std::uint64_t> drops_;
    bool connected_ = false;
    bool refusal_told_ = false;
    std::string last_error_;
    std::optional<std::string> died_;
    std::map<Caller, std::string> refusals_;  ///< What the server said to the threads that it refuses at present.
};

}  // namespace rl4sys::client
