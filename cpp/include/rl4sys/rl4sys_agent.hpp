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

/// One episode, under its original name. Created by `requestForAction`.
class RL4SysTrajectory {
public:
    /// Whether the episode has ended.
    bool isCompleted() const noexcept { return episode_.ended(); }

private:
    friend class RL4SysAgent;
    friend class RL4SysAction;
    explicit RL4SysTrajectory(Episode episode) : episode_(std::move(episode)) {}

    Episode episode_;
};

/// A decision, to which a reward can be given.
class RL4SysAction {
public:
    /// The action: one choice, several, or numbers.
    const std::vector<float>& getAction() const noexcept { return values_; }
    /// The choice, where there is one.
    std::int64_t getChoice() const noexcept { return choice_; }
    double getReward() const noexcept { return reward_; }
    /// Set the reward of this decision; a later call replaces an earlier one.
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

/// An agent with the original API. It connects at once, or at the first request if the config lacks `input_size`.
class RL4SysAgent {
public:
    using Answer = std::pair<std::shared_ptr<RL4SysTrajectory>, RL4SysAction>;

    /// With `debug`, messages go to the standard error stream. @throws SettingsError, ConnectError
    explicit RL4SysAgent(const std::string& configFilePath, bool debug = false);

    /// Choose an action; begins a new trajectory if there is none or the given one has ended. Empty if the observation
    /// or the mask does not fit; `lastError` then says why.
    std::optional<Answer> requestForAction(std::shared_ptr<RL4SysTrajectory> trajectory,
                                           const std::vector<float>& observation,
                                           const std::vector<std::uint8_t>& mask = {});
    /// Does nothing, since `requestForAction` already recorded the decision; kept for the original API.
    /// @throws std::invalid_argument for an action of another trajectory.
    void addToTrajectory(const std::shared_ptr<RL4SysTrajectory>& trajectory, const RL4SysAction& action);
    void updateActionReward(RL4SysAction& action, double reward) { action.updateReward(reward); }
    /// End the episode; if it was cut short, pass `truncated` and the final observation.
    /// False if it had already ended.
    bool markEndOfTrajectory(const std::shared_ptr<RL4SysTrajectory>& trajectory, const RL4SysAction& action,
                             const std::vector<float>& finalObservation = {}, bool truncated = false);
    /// Send all sealed segments and wait until the server acknowledged them; false after `timeout` seconds.
    bool flushTrajectories(double timeout = 10.0);
    /// Send the backlog and stop.
    void close(double timeout = 10.0);
    /// The version of the weights in use; -1 before the first.
    std::int64_t getCurrentModelVersion() const;
    const std::string& lastError() const noexcept { return last_error_; }
    /// The underlying agent, for `health()` and for using both APIs together; null before the first request of a client
    /// whose config lacks `input_size`.
    Agent* agent() noexcept { return agent_ ? &*agent_ : nullptr; }

private:
    ClientSettings settings_;
    std::optional<Agent> agent_;
    std::string last_error_;
};

}  // namespace rl4sys
