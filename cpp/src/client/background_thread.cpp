#include "client/background_thread.hpp"

#include <exception>
#include <utility>

#include "client/clock.hpp"

namespace rl4sys::client {

BackgroundThread::BackgroundThread(std::string name, std::function<void()> work, std::shared_ptr<void> owner,
                                   AgentStatus& status)
    : state_(std::make_shared<State>()) {
    thread_ = std::thread(
        [state = state_, name = std::move(name), work = std::move(work), keep = std::move(owner), &status]() mutable {
            try {
                work();
                // Nothing above could handle it, and the live system must keep running.
            } catch (const std::exception& error) {
                status.died(name, error.what());
            }
            work = nullptr;
            keep.reset();
            const std::lock_guard lock(state->mutex);
            state->done = true;
            state->ended.notify_all();
        });
}

BackgroundThread::~BackgroundThread() {
    if (thread_.joinable()) {
        thread_.detach();
    }
}

void BackgroundThread::join(double seconds) {
    if (!thread_.joinable()) {
        return;
    }
    {
        std::unique_lock lock(state_->mutex);
        if (!state_->ended.wait_for(lock, length_of(seconds), [this] { return state_->done; })) {
            thread_.detach();
            return;
        }
    }
    thread_.join();
}

}  // namespace rl4sys::client
