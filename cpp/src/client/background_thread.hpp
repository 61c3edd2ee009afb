/// Threads that work behind the back of a live system, and never take it down with them.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "client/agent_status.hpp"

namespace rl4sys::client {

/// Runs `work` until it returns. If it dies, `health()` tells; the system goes on.
class BackgroundThread {
public:
    /// `owner` keeps alive what the work uses, also if nobody can wait for its end.
    BackgroundThread(std::string name, std::function<void()> work, std::shared_ptr<void> owner, AgentStatus& status);
    ~BackgroundThread();
    BackgroundThread(const BackgroundThread&) = delete;
    BackgroundThread& operator=(const BackgroundThread&) = delete;

    /// Wait until it has ended, but no longer than so many seconds; what still hangs then is left to itself.
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
