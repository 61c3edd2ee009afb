#include "client/snapshot.hpp"

#include <utility>

#include "client/clock.hpp"

namespace rl4sys::client {

SharedSnapshot NewestSnapshot::get() const {
    const std::lock_guard lock(mutex_);
    return snapshot_;
}

double NewestSnapshot::since() const {
    const std::lock_guard lock(mutex_);
    return since_;
}

void NewestSnapshot::publish(SharedSnapshot snapshot, double now) {
    {
        const std::lock_guard lock(mutex_);
        // The older snapshot is destroyed with the argument, after the lock is released.
        std::swap(snapshot_, snapshot);
        since_ = now;
        generation_.fetch_add(1, std::memory_order_release);
    }
    published_.notify_all();
}

void NewestSnapshot::wake() {
    {
        // A waiting thread either sees what changed, or is waiting already.
        const std::lock_guard lock(mutex_);
    }
    published_.notify_all();
}

void NewestSnapshot::wait(double seconds, const std::function<bool()>& holds) {
    std::unique_lock lock(mutex_);
    published_.wait_for(lock, length_of(seconds), holds);
}

}  // namespace rl4sys::client
