/// @file
/// The original call style of RL4Sys, as a thin layer over `Agent` and `Episode`.
///
/// @code
/// rl4sys::RL4SysAgent agent("luna_conf.json");
/// std::shared_ptr<rl4sys::RL4SysTrajectory> trajectory;
/// auto answer = agent.requestForAction(trajectory, observation);
/// auto [current, action] = *answer;
/// agent.addToTrajectory(current, action);
/// agent.updateActionReward(action, reward);
/// agent.markEndOfTrajectory(current, action);
/// @endcode
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rl4sys/agent.hpp"

namespace rl4sys {

class RL4SysAgent;

/// One episode, as the original calls it. Made by `requestForAction`.
class RL4SysTrajectory {
public:
    /// Whether its end was marked.
    bool isCompleted() const noexcept { return episode_.ended(); }

private:
    friend class RL4SysAgent;
    friend class RL4SysAction;
    explicit RL4SysTrajectory(Episode episode) : episode_(std::move(episode)) {}

    Episode episode_;
};

/// A decision that can still be rewarded.
class RL4SysAction {
public:
    /// What to do: one choice, several, or numbers.
    const std::vector<float>& getAction() const noexcept { return values_; }
    /// The choice, where there is one.
    std::int64_t getChoice() const noexcept { return choice_; }
    double getReward() const noexcept { return reward_; }
    /// The reward of this decision is this; a later call corrects an earlier one.
    void updateReward(double reward);

private:
    friend class RL4SysAgent;
    RL4SysAction(std::shared_ptr<RL4SysTrajectory> trajectory, const Action& action);

    std::shared_ptr<RL4SysTrajectory> trajectory_;
    std::vector<float> values_;
    std::int64_t choice_ = 0;
    std::int64_t decision_ = -1;
    double reward_ = 0.0;
};

/// Connects as its file says. Where the file does not tell the size of observations, at the first request.
class RL4SysAgent {
public:
    using Answer = std::pair<std::shared_ptr<RL4SysTrajectory>, RL4SysAction>;

    /// With `debug`, messages go to the standard error stream. @throws SettingsError, ConnectError
    explicit RL4SysAgent(const std::string& configFilePath, bool debug = false);

    /// Decide; without a trajectory, or after the end of one, a new one begins. Nothing if the observation or the mask
    /// is of no use; `lastError` then says why.
    std::optional<Answer> requestForAction(std::shared_ptr<RL4SysTrajectory> trajectory,
                                           const std::vector<float>& observation,
                                           const std::vector<std::uint8_t>& mask = {});
    /// Kept for the programs that call it: a decision is part of its trajectory from the start.
    /// @throws std::invalid_argument for an action of another trajectory.
    void addToTrajectory(const std::shared_ptr<RL4SysTrajectory>& trajectory, const RL4SysAction& action);
    void updateActionReward(RL4SysAction& action, double reward) { action.updateReward(reward); }
    /// The episode is over. One that was only cut short needs `truncated` and what was observed then.
    /// False if it had ended before.
    bool markEndOfTrajectory(const std::shared_ptr<RL4SysTrajectory>& trajectory, const RL4SysAction& action,
                             const std::vector<float>& finalObservation = {}, bool truncated = false);
    /// Send what there is, and wait until the server has it; false if it did not in `timeout` seconds.
    bool flushTrajectories(double timeout = 10.0);
    /// Send what there is, and stop.
    void close(double timeout = 10.0);
    /// The version of the weights that decide now; -1 before the first.
    std::int64_t getCurrentModelVersion() const;
    const std::string& lastError() const noexcept { return last_error_; }
    /// The agent beneath, for `health()` and more than one style at a time; null before the first request of a client
    /// whose file does not tell the size of observations.
    Agent* agent() noexcept { return agent_ ? &*agent_ : nullptr; }

private:
    ClientSettings settings_;
    std::optional<Agent> agent_;
    std::string last_error_;
};

}  // namespace rl4sys
