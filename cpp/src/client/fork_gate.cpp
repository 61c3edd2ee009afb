#include "client/fork_gate.hpp"

#include <chrono>
#include <memory>

namespace rl4sys::client {
namespace {

// A cancelled call ends within a millisecond. One that hangs must not stop the program as well.
constexpr std::chrono::seconds longest_wait{5};

// Never destroyed: threads may pass while the process ends.
std::atomic<ForkGate*> present = std::make_unique<ForkGate>().release();

}  // namespace

std::size_t ForkGate::enter() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !is_closed_; });
    ++inside_;
    return forks_;
}

void ForkGate::leave() {
    {
        const std::lock_guard lock(mutex_);
        --inside_;
    }
    changed_.notify_all();
}

void ForkGate::add(ForkedConnection& connection) {
    const std::lock_guard lock(mutex_);
    connections_.insert(&connection);
}

void ForkGate::remove(ForkedConnection& connection) {
    const std::lock_guard lock(mutex_);
    connections_.erase(&connection);
}

bool ForkGate::close() {
    std::unique_lock lock(mutex_);
    // Another thread may be forking.
    changed_.wait(lock, [this] { return !is_closed_; });
    is_closed_ = true;
    ++forks_;
    for (ForkedConnection* connection : connections_) {
        connection->interrupt();
    }
    is_released_ = changed_.wait_for(lock, longest_wait, [this] { return inside_ == 0; });
    if (is_released_) {
        for (ForkedConnection* connection : connections_) {
            connection->release();
        }
    }
    lock.release();
    return is_released_;
}

void ForkGate::open() {
    if (is_released_) {
        for (ForkedConnection* connection : connections_) {
            connection->restore();
        }
    }
    is_closed_ = false;
    mutex_.unlock();
    changed_.notify_all();
}

ForkGate& fork_gate() noexcept {
    return *present;
}

void replace_fork_gate() {
    present = std::make_unique<ForkGate>().release();
}

InsideGate::InsideGate() : forks_(fork_gate().enter()) {}

InsideGate::~InsideGate() {
    fork_gate().leave();
}

}  // namespace rl4sys::client
