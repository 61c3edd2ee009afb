#include "client/agent_status.hpp"

#include <algorithm>
#include <utility>

#include "rl4sys/log.hpp"

namespace rl4sys::client {

void AgentStatus::bad_input(const std::string& problem) {
    if (bad_inputs.fetch_add(1, std::memory_order_relaxed) == 0) {
        log(LogLevel::Warning,
            "An observation cannot be used: " + problem + " Later ones are only counted: see health().");
    }
}

bool AgentStatus::drop(const std::string& reason, std::uint64_t count) {
    const std::lock_guard lock(mutex_);
    const bool first = drops_.find(reason) == drops_.end();
    drops_[reason] += count;
    return first;
}

std::map<std::string, std::uint64_t> AgentStatus::drops() const {
    const std::lock_guard lock(mutex_);
    return drops_;
}

bool AgentStatus::connected() const {
    const std::lock_guard lock(mutex_);
    return connected_;
}

std::string AgentStatus::last_error() const {
    const std::lock_guard lock(mutex_);
    return last_error_;
}

std::optional<std::string> AgentStatus::stopped() const {
    const std::lock_guard lock(mutex_);
    if (!died_ && !refusals_.empty()) {
        return refusals_.begin()->second;
    }
    return died_;
}

void AgentStatus::succeeded(Caller caller) {
    ++heard;
    {
        const std::lock_guard lock(mutex_);
        refusals_.erase(caller);
        if (std::exchange(connected_, true)) {
            return;
        }
    }
    log(LogLevel::Info, "Connected to the training server.");
}

void AgentStatus::warn(const std::string& warning) {
    {
        const std::lock_guard lock(mutex_);
        if (std::exchange(warning_, warning) == warning || warning.empty()) {
            return;
        }
    }
    log(LogLevel::Warning, "The training server warns: " + warning);
}

std::string AgentStatus::warning() const {
    const std::lock_guard lock(mutex_);
    return warning_;
}

std::optional<Reach> AgentStatus::reach() const {
    const std::lock_guard lock(mutex_);
    return reach_;
}

void AgentStatus::failed(const std::string& error, Reach reach) {
    {
        const std::lock_guard lock(mutex_);
        last_error_ = error;
        reach_ = reach;
        if (!std::exchange(connected_, false)) {
            return;
        }
    }
    log(LogLevel::Warning, "Lost the training server: " + error + " Decisions continue; experience is kept.");
}

void AgentStatus::refused(Caller caller, const std::string& error) {
    {
        const std::lock_guard lock(mutex_);
        connected_ = false;
        last_error_ = error;
        const bool is_known = std::any_of(refusals_.begin(), refusals_.end(),
                                          [&](const auto& refusal) { return refusal.second == error; });
        refusals_[caller] = error;
        if (is_known) {
            return;
        }
    }
    log(LogLevel::Error, "The training server refuses this client: " + error +
                             " Decisions continue; the client tries again every 30 s.");
}

void AgentStatus::died(const std::string& name, const std::string& error) {
    {
        const std::lock_guard lock(mutex_);
        connected_ = false;
        died_ = error;
        last_error_ = "The thread " + name + " died: " + error;
    }
    log(LogLevel::Error, "The background thread " + name + " died: " + error + " Decisions continue without it.");
}

void AgentStatus::note(const std::string& error) {
    const std::lock_guard lock(mutex_);
    last_error_ = error;
}

bool AgentStatus::first_refusal() {
    const std::lock_guard lock(mutex_);
    return !std::exchange(refusal_reported_, true);
}

}  // namespace rl4sys::client
