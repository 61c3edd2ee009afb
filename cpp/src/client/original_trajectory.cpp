#include <utility>

#include "rl4sys/log.hpp"
#include "rl4sys/rl4sys_agent.hpp"

namespace rl4sys {
namespace {

// Actions that a trajectory shows; the older ones of a longer trajectory are forgotten there, not in the record.
constexpr std::size_t most_actions = 4096;

}  // namespace

RL4SysTrajectory::~RL4SysTrajectory() {
    try {
        settle();
        omit_latest();
    } catch (const std::exception& error) {
        log(LogLevel::Error, std::string("A trajectory could not be ended: ") + error.what());
    }
}

void RL4SysTrajectory::omit_latest() {
    if (is_missing_latest()) {
        episode_.withdraw(latest_->decision_->id);
    }
    latest_.reset();
}

void RL4SysTrajectory::add(const RL4SysAction& action) {
    if (std::exchange(action.decision_->added, true)) {
        return;
    }
    if (actions_.size() == most_actions) {
        actions_.erase(actions_.begin(), actions_.begin() + most_actions / 2);
    }
    actions_.push_back(action);
}

void RL4SysTrajectory::settle() {
    if (!end_) {
        return;
    }
    const End end = *std::exchange(end_, std::nullopt);
    const bool is_final = !is_missing_latest();
    omit_latest();
    const bool has_observation = is_final && !end.final_observation.empty();
    episode_.end(has_observation ? Observation(end.final_observation) : Observation(), end.ending);
}

void RL4SysTrajectory::settle_if_complete() {
    if (end_ && !is_missing_latest() && (!latest_ || latest_->is_reward_set() || end_->ending == Ending::Truncated)) {
        settle();
    }
}

}  // namespace rl4sys
