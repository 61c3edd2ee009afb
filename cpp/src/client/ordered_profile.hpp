/// Measures an agent by order of an operator, and keeps what was measured until the server has it.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "client/background_thread.hpp"
#include "client/profiler.hpp"

namespace rl4sys::client {

/// Carries out one order at a time. The reporter's thread calls it; the profiler has a thread of its own.
class OrderedProfile {
public:
    using StartThread = std::function<std::unique_ptr<BackgroundThread>(std::function<void()> work)>;

    /// `start` runs the profiler; `on_end` is called when everything is measured, so that it is reported soon.
    OrderedProfile(ProfiledParts parts, StartThread start, std::function<void()> on_end)
        : parts_(std::move(parts)), start_(std::move(start)), on_end_(std::move(on_end)) {}

    /// What to report; nothing before the first order.
    std::optional<wire::ProfileProgress> progress() const;
    /// Take the reply to a report: what was reported is stored, and an order begins or ends.
    void answered(const std::optional<wire::ProfileProgress>& reported, const std::optional<wire::ProfileOrder>& order);
    /// End what is being measured soon; the agent returns to its normal state.
    void stop();
    /// The same, and wait for it up to so many seconds.
    void close(double seconds);

private:
    void begin(const wire::ProfileOrder& order);
    void run(const wire::ProfileOrder& order);

    ProfiledParts parts_;
    StartThread start_;
    std::function<void()> on_end_;
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::optional<wire::ProfileProgress> progress_;
    bool is_running_ = false;
    bool is_stopping_ = false;
    std::unique_ptr<BackgroundThread> thread_;
};

}  // namespace rl4sys::client
