#include <stdexcept>

#include "client/spaces.hpp"
#include "rl4sys/log.hpp"
#include "rl4sys/rl4sys_agent.hpp"

namespace rl4sys {
namespace {

/// Adds a mask, which is optional in every request.
ClientSettings completed(ClientSettings settings) {
    if (!settings.action) {
        throw SettingsError("The config has no act_dim, so the actions are unknown. Add it.");
    }
    if (!settings.observation.empty() && !client::has_mask(settings.observation)) {
        const std::vector<ArraySpec> mask = mask_for(*settings.action);
        settings.observation.insert(settings.observation.end(), mask.begin(), mask.end());
    }
    return settings;
}

/// Takes the shape from the first observation.
ClientSettings with_observation(ClientSettings settings, std::size_t size) {
    settings.observation = {{std::string(observation_name), ElementType::Float32, {static_cast<std::uint32_t>(size)}}};
    return completed(std::move(settings));
}

}  // namespace

RL4SysAction::RL4SysAction(std::shared_ptr<RL4SysTrajectory> trajectory, const Action& action)
    : trajectory_(std::move(trajectory)), decision_(action.decision()) {
    // Those of a mixed action begin with its choices.
    choice_ = action.choice();
    values_.assign(action.choices(), action.choices() + action.choice_count());
    values_.insert(values_.end(), action.numbers(), action.numbers() + action.number_count());
}

void RL4SysAction::updateReward(double reward) {
    trajectory_->episode_.reward(reward - reward_, decision_);
    reward_ = reward;
}

RL4SysAgent::RL4SysAgent(const std::string& configFilePath, bool debug) {
    if (debug) {
        log_to(standard_error(), LogLevel::Debug);
    }
    settings_ = completed(load_settings(configFilePath));
    if (!settings_.observation.empty()) {
        agent_.emplace(connect(settings_));
    }
}

std::optional<RL4SysAgent::Answer> RL4SysAgent::requestForAction(std::shared_ptr<RL4SysTrajectory> trajectory,
                                                                 const std::vector<float>& observation,
                                                                 const std::vector<std::uint8_t>& mask) {
    if (!agent_) {
        agent_.emplace(connect(with_observation(settings_, observation.size())));
    }
    if (!trajectory || trajectory->isCompleted()) {
        trajectory.reset(new RL4SysTrajectory(agent_->episode()));  // NOLINT: its constructor is for this class only.
    }
    const Action action = trajectory->episode_.act(observation, mask.empty() ? ArrayView() : ArrayView(mask));
    if (!action) {
        last_error_ = action.message();
        return std::nullopt;
    }
    RL4SysAction decided(trajectory, action);
    return Answer(std::move(trajectory), std::move(decided));
}

void RL4SysAgent::addToTrajectory(const std::shared_ptr<RL4SysTrajectory>& trajectory, const RL4SysAction& action) {
    if (trajectory != action.trajectory_) {
        throw std::invalid_argument("This action was decided in another trajectory; add it to the one it came with.");
    }
}

bool RL4SysAgent::markEndOfTrajectory(const std::shared_ptr<RL4SysTrajectory>& trajectory, const RL4SysAction& action,
                                      const std::vector<float>& finalObservation, bool truncated) {
    addToTrajectory(trajectory, action);
    if (trajectory->isCompleted()) {
        return false;
    }
    trajectory->episode_.end(finalObservation.empty() ? Observation() : Observation(finalObservation),
                             truncated ? Ending::Truncated : Ending::Terminated);
    return true;
}

bool RL4SysAgent::flushTrajectories(double timeout) {
    return !agent_ || agent_->flush(timeout);
}

void RL4SysAgent::close(double timeout) {
    if (agent_) {
        agent_->close(timeout);
    }
}

std::int64_t RL4SysAgent::getCurrentModelVersion() const {
    if (!agent_) {
        return -1;
    }
    const auto version = agent_->health().version;
    return version ? static_cast<std::int64_t>(*version) : -1;
}

}  // namespace rl4sys
