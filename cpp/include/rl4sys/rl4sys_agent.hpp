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
///
/// A decision is recorded when it is added, so a program that only asks for actions teaches nothing. Methods have the
/// names of the original C++ client and those of the Python client.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "rl4sys/agent.hpp"

namespace rl4sys {

class RL4SysAgent;
class RL4SysTrajectory;

/// A decision, to which a reward can be given. It is recorded once it is added to its trajectory. Copies of it are the
/// same decision.
class RL4SysAction {
public:
    /// The action: one choice, several, or numbers.
    const std::vector<float>& getAction() const noexcept { return decision_->values; }
    /// The choice, where there is one.
    std::int64_t getChoice() const noexcept { return decision_->choice; }
    /// The reward; 0 until one is given.
    double getReward() const noexcept { return decision_->reward.value_or(0.0); }
    /// Set the reward of this decision; a later call replaces an earlier one. Without effect once the trajectory is
    /// destroyed. @throws std::invalid_argument if it is not finite.
    void updateReward(double reward);

    /// The action, as `getAction`.
    const std::vector<float>& act() const noexcept { return decision_->values; }
    const std::vector<float>& obs() const noexcept { return decision_->observation; }
    const std::vector<std::uint8_t>& mask() const noexcept { return decision_->mask; }
    /// The reward; nothing until one is given, which counts as 0.
    std::optional<double> rew() const noexcept { return decision_->reward; }
    /// What the policy noted about its choice: `log_prob`, also as `logp_a`.
    const std::map<std::string, double>& data() const noexcept { return decision_->data; }
    /// The version of the policy that decided; 0 if it was the fallback.
    std::int64_t version() const noexcept { return decision_->version; }
    std::int64_t getVersion() const noexcept { return version(); }
    bool done() const noexcept { return decision_->done; }
    bool isDone() const noexcept { return done(); }
    /// Whether this is the last action of its trajectory.
    bool is_done() const noexcept { return decision_->done; }
    /// Mark the action as the last of its trajectory. `markEndOfTrajectory` does so, and ends the trajectory.
    void set_done(bool done) noexcept { decision_->done = done; }
    bool is_reward_set() const noexcept { return decision_->reward.has_value(); }
    void update_reward(double reward) { updateReward(reward); }

private:
    friend class RL4SysAgent;
    friend class RL4SysTrajectory;

    struct Decided {
        std::weak_ptr<RL4SysTrajectory> trajectory;
        std::int64_t id = -1;  ///< Within its episode.
        std::vector<float> values;
        std::int64_t choice = 0;
        std::vector<float> observation;
        std::vector<std::uint8_t> mask;
        std::map<std::string, double> data;
        std::int64_t version = 0;
        std::optional<double> reward;
        bool done = false;
        bool added = false;
    };
    explicit RL4SysAction(std::shared_ptr<Decided> decision) : decision_(std::move(decision)) {}

    std::shared_ptr<Decided> decision_;
};

/// One episode, under its original name. Created by `requestForAction`. One thread at a time may use it and its
/// actions.
class RL4SysTrajectory {
public:
    /// Truncates the episode unless it has ended.
    ~RL4SysTrajectory();
    RL4SysTrajectory(const RL4SysTrajectory&) = delete;
    RL4SysTrajectory& operator=(const RL4SysTrajectory&) = delete;

    /// Whether the episode has ended.
    bool isCompleted() const noexcept { return end_ || episode_.ended(); }
    bool is_completed() const noexcept { return isCompleted(); }
    /// The actions that were added; of a very long trajectory, only the latest.
    const std::vector<RL4SysAction>& actions() const noexcept { return actions_; }
    const std::vector<RL4SysAction>& get_actions() const noexcept { return actions_; }
    const std::vector<RL4SysAction>& getActions() const noexcept { return actions_; }
    /// How many actions it has kept.
    std::size_t size() const noexcept { return actions_.size(); }
    bool is_empty() const noexcept { return actions_.empty(); }
    bool isEmpty() const noexcept { return actions_.empty(); }
    /// The version of the policy that took its first decision.
    std::int64_t version() const noexcept { return version_; }
    /// Whether it can be learned from: always, since every step knows its own version.
    static bool is_valid() noexcept { return true; }
    /// Whether it has any action.
    bool isValid() const noexcept { return !actions_.empty(); }
    std::int64_t getVersion() const noexcept { return version_; }

private:
    friend class RL4SysAgent;
    friend class RL4SysAction;

    /// An end that may still wait for the last action or its reward.
    struct End {
        Ending ending = Ending::Terminated;
        std::vector<float> final_observation;
    };
    explicit RL4SysTrajectory(Episode episode) : episode_(std::move(episode)) {}

    /// Whether the latest decision was taken and not added.
    bool is_missing_latest() const noexcept { return latest_ && !latest_->decision_->added; }
    /// Take the latest decision out of the record, unless it was added.
    void omit_latest();
    void add(const RL4SysAction& action);
    /// Carry out an end that waited.
    void settle();
    /// Carry out an end if nothing is missing any more.
    void settle_if_complete();

    Episode episode_;
    std::vector<RL4SysAction> actions_;
    std::optional<RL4SysAction> latest_;
    std::optional<End> end_;
    std::int64_t version_ = 0;
};

/// An agent with the original API. It connects at once, or at the first request if the config lacks `input_size`.
class RL4SysAgent {
public:
    using Answer = std::pair<std::shared_ptr<RL4SysTrajectory>, RL4SysAction>;
    using Trajectory = std::shared_ptr<RL4SysTrajectory>;

    /// With `debug` here or in the config, messages go to the standard error stream; with `log_level` in the config,
    /// those from that level on. @throws SettingsError, ConnectError
    explicit RL4SysAgent(const std::string& configFilePath, bool debug = false);
    /// The original API for an agent that is connected already.
    explicit RL4SysAgent(Agent agent);
    /// Calls `close`.
    ~RL4SysAgent();
    RL4SysAgent(const RL4SysAgent&) = delete;
    RL4SysAgent& operator=(const RL4SysAgent&) = delete;

    /// Choose an action; begins a new trajectory if there is none or the given one has ended. Empty if the observation
    /// or the mask does not fit; `lastError` then says why.
    std::optional<Answer> requestForAction(Trajectory trajectory, const std::vector<float>& observation,
                                           const std::vector<std::uint8_t>& mask = {});
    /// The same with a mask of numbers, as the original client takes it: a choice whose number is 0 is forbidden. (A
    /// template, so that a list in braces is still a mask of bytes.)
    template <typename Mask, typename = std::enable_if_t<std::is_same_v<Mask, std::vector<float>>>>
    std::optional<Answer> requestForAction(Trajectory trajectory, const std::vector<float>& observation,
                                           const Mask& mask) {
        std::vector<std::uint8_t> allowed(mask.size());
        std::transform(mask.begin(), mask.end(), allowed.begin(),
                       [](float number) { return static_cast<std::uint8_t>(number != 0.0F); });
        return requestForAction(std::move(trajectory), observation, allowed);
    }
    /// Record the action as the next step of the trajectory. Add it before the next request of this trajectory: until
    /// then a decision can be recorded, afterwards it is left out. The last action may be added after the end.
    /// @throws std::invalid_argument for an action of another trajectory.
    void addToTrajectory(const Trajectory& trajectory, const RL4SysAction& action);
    void updateActionReward(RL4SysAction& action, double reward) { action.updateReward(reward); }
    /// End the episode; if it was cut short, pass `truncated` and the final observation. An action that has a reward
    /// and was not added before is recorded now. False if it had already ended.
    bool markEndOfTrajectory(const Trajectory& trajectory, const RL4SysAction& action,
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

    std::optional<Answer> request_for_action(Trajectory trajectory, const std::vector<float>& observation,
                                             const std::vector<std::uint8_t>& mask = {}) {
        return requestForAction(std::move(trajectory), observation, mask);
    }
    void add_to_trajectory(const Trajectory& trajectory, const RL4SysAction& action) {
        addToTrajectory(trajectory, action);
    }
    void update_action_reward(RL4SysAction& action, double reward) { action.updateReward(reward); }
    bool mark_end_of_trajectory(const Trajectory& trajectory, const RL4SysAction& action,
                                const std::vector<float>& final_observation = {}, bool truncated = false) {
        return markEndOfTrajectory(trajectory, action, final_observation, truncated);
    }
    bool flush(double timeout = 10.0) { return flushTrajectories(timeout); }
    /// The permanent name of the client.
    const std::string& client_id() const noexcept { return settings_.client_id; }
    /// The algorithm as the config names it.
    const std::string& algorithm_name() const noexcept { return algorithm_name_; }
    /// The section of this name, as the config has it, in JSON.
    const std::string& algorithm_parameters() const noexcept { return algorithm_parameters_; }
    /// `onpolicy` or `offpolicy`.
    const std::string& algorithm_type() const noexcept { return algorithm_type_; }
    /// The address of the training server.
    const std::string& server_address() const noexcept { return settings_.server; }
    /// The version of the policy that decides at present; 0 while there is none.
    std::int64_t local_version() const { return std::max<std::int64_t>(0, getCurrentModelVersion()); }

private:
    void settle();

    ClientSettings settings_;
    std::string algorithm_name_;
    std::string algorithm_parameters_ = "{}";
    std::string algorithm_type_;
    std::optional<Agent> agent_;
    std::mutex settling_;
    std::vector<std::weak_ptr<RL4SysTrajectory>> unsettled_;  ///< Ends that wait for the last action or its reward.
    std::string last_error_;
};

}  // namespace rl4sys
