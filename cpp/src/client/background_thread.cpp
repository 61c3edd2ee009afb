#include "client/background_thread.hpp"

#include <pthread.h>

#include <exception>
#include <utility>

#include "client/clock.hpp"
#include "client/signals_blocked.hpp"

namespace rl4sys::client {
BackgroundThread::BackgroundThread(std::string name, std::function<void()> work, std::shared_ptr<void> owner,
                                   AgentStatus& status)
    : state_(std::make_shared<State>()) {
    const SignalsBlocked during_creation;
    thread_ = std::thread(
        [state = state_, name = std::move(name), work = std::move(work), keep = std::move(owner), &status]() mutable {
            // Linux keeps 15 letters.
            ::pthread_setname_np(::pthread_self(), ("rl4sys-" + name).substr(0, 15).c_str());
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
