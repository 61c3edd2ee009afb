#include <fstream>
#include <stdexcept>

#include "client/original_settings.hpp"
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

client::OriginalNames names_in(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return client::original_names(client::Json::parse(file));
}

LogLevel level_of(const std::string& name) {
    return name == "DEBUG"     ? LogLevel::Debug
           : name == "INFO"    ? LogLevel::Info
           : name == "WARNING" ? LogLevel::Warning
                               : LogLevel::Error;
}

}  // namespace

RL4SysAgent::RL4SysAgent(const std::string& configFilePath, bool debug) {
    settings_ = completed(load_settings(configFilePath));
    const client::OriginalNames names = names_in(configFilePath);
    algorithm_name_ = names.algorithm.empty() ? settings_.algorithm : names.algorithm;
    algorithm_parameters_ = names.parameters_json;
    algorithm_type_ = names.kind;
    if (debug || names.debug) {
        log_to(standard_error(), LogLevel::Debug);
    } else if (!names.log_level.empty()) {
        log_to(standard_error(), level_of(names.log_level));
    }
    if (!settings_.observation.empty()) {
        agent_.emplace(connect(settings_));
    }
}

RL4SysAgent::RL4SysAgent(Agent agent)
    : settings_(agent.settings()),
      algorithm_name_(settings_.algorithm),
      algorithm_type_(algorithm_name_ == "ppo" ? "onpolicy" : "offpolicy"),
      agent_(std::move(agent)) {}

RL4SysAgent::~RL4SysAgent() {
    try {
        close();
    } catch (const std::exception& error) {
        log(LogLevel::Error, std::string("The agent could not be closed in order: ") + error.what());
    }
}

std::optional<RL4SysAgent::Answer> RL4SysAgent::requestForAction(Trajectory trajectory,
                                                                 const std::vector<float>& observation,
                                                                 const std::vector<std::uint8_t>& mask) {
    if (!agent_) {
        agent_.emplace(connect(with_observation(settings_, observation.size())));
    }
    settle();
    if (!trajectory || trajectory->isCompleted()) {
        trajectory.reset(new RL4SysTrajectory(agent_->episode()));  // NOLINT: its constructor is for this class only.
    }
    trajectory->omit_latest();
    const Action action = trajectory->episode_.act(observation, mask.empty() ? ArrayView() : ArrayView(mask));
    if (!action) {
        last_error_ = action.message();
        return std::nullopt;
    }
    auto decided = std::make_shared<RL4SysAction::Decided>();
    decided->trajectory = trajectory;
    decided->id = action.decision();
    decided->choice = action.choice();
    // Those of a mixed action begin with its choices.
    decided->values.assign(action.choices(), action.choices() + action.choice_count());
    decided->values.insert(decided->values.end(), action.numbers(), action.numbers() + action.number_count());
    decided->observation = observation;
    decided->mask = mask;
    decided->version = static_cast<std::int64_t>(action.version().value_or(0));
    if (const auto log_prob = action.log_prob()) {
        decided->data = {{"log_prob", *log_prob}, {"logp_a", *log_prob}};
    }
    if (action.decision() == 0) {
        trajectory->version_ = decided->version;
    }
    trajectory->latest_ = RL4SysAction(std::move(decided));
    return Answer(trajectory, *trajectory->latest_);
}

void RL4SysAgent::addToTrajectory(const Trajectory& trajectory, const RL4SysAction& action) {
    if (trajectory != action.decision_->trajectory.lock()) {
        throw std::invalid_argument("This action was decided in another trajectory; add it to the one it came with.");
    }
    const bool is_latest = trajectory->latest_ && trajectory->latest_->decision_ == action.decision_;
    if (!is_latest && !action.decision_->added) {
        log(LogLevel::Warning,
            "An action was added after the next one was requested, or long after the end; it is not recorded. Add each "
            "action before the next request.");
        return;
    }
    trajectory->add(action);
    trajectory->settle_if_complete();
}

bool RL4SysAgent::markEndOfTrajectory(const Trajectory& trajectory, const RL4SysAction& action,
                                      const std::vector<float>& finalObservation, bool truncated) {
    if (trajectory != action.decision_->trajectory.lock()) {
        throw std::invalid_argument("This action was decided in another trajectory; end the one it came with.");
    }
    if (trajectory->isCompleted()) {
        return false;
    }
    action.decision_->done = true;
    if (trajectory->is_missing_latest() && (trajectory->latest_->is_reward_set() || truncated)) {
        trajectory->add(*trajectory->latest_);
    }
    trajectory->end_ = {truncated ? Ending::Truncated : Ending::Terminated, finalObservation};
    trajectory->settle_if_complete();
    if (trajectory->end_) {
        const std::lock_guard lock(settling_);
        unsettled_.push_back(trajectory);
    }
    return true;
}

bool RL4SysAgent::flushTrajectories(double timeout) {
    settle();
    return !agent_ || agent_->flush(timeout);
}

void RL4SysAgent::close(double timeout) {
    settle();
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

/// Carry out ends that waited.
void RL4SysAgent::settle() {
    std::vector<std::weak_ptr<RL4SysTrajectory>> unsettled;
    {
        const std::lock_guard lock(settling_);
        unsettled.swap(unsettled_);
    }
    for (const std::weak_ptr<RL4SysTrajectory>& waiting : unsettled) {
        if (const Trajectory trajectory = waiting.lock()) {
            trajectory->settle();
        }
    }
}

}  // namespace rl4sys
