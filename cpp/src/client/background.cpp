#include "client/background.hpp"

#include <exception>
#include <utility>

#include "client/clock.hpp"

namespace rl4sys::client {

Background::Background(std::string name, std::function<void()> work, std::shared_ptr<void> owner, Tally& tally)
    : state_(std::make_shared<State>()) {
    thread_ = std::thread(
        [state = state_, name = std::move(name), work = std::move(work), keep = std::move(owner), &tally]() mutable {
            try {
                work();
                // Whatever it is, nobody above could handle it: the owner is told, and the process lives.
            } catch (const std::exception& error) {
                tally.died(name, error.what());
            }
            work = nullptr;
            keep.reset();
            const std::lock_guard lock(state->mutex);
            state->done = true;
            state->ended.notify_all();
        });
}

Background::~Background() {
    if (thread_.joinable()) {
        thread_.detach();
    }
}

void Background::join(double seconds) {
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
