/// Background threads, whose errors never end the live system.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "client/agent_status.hpp"

namespace rl4sys::client {

/// Runs `work` until it returns. An error ends the thread and is reported by `health()`, nothing more.
class BackgroundThread {
public:
    /// `owner` keeps what the work uses alive, even after `join` gave up.
    BackgroundThread(std::string name, std::function<void()> work, std::shared_ptr<void> owner, AgentStatus& status);
    ~BackgroundThread();
    BackgroundThread(const BackgroundThread&) = delete;
    BackgroundThread& operator=(const BackgroundThread&) = delete;

    /// Wait for its end, at most this many seconds; a thread that still hangs is detached.
    void join(double seconds);

private:
    struct State {
        std::mutex mutex;
        std::condition_variable ended;
        bool done = false;
    };

    std::shared_ptr<State> state_;
    std::thread thread_;
};

}  // namespace rl4sys::client
