/// @file
/// The client: acts inside a live system with a policy that a training server improves.
///
/// @code
/// rl4sys::Agent agent = rl4sys::connect("agent.json");
/// rl4sys::Episode episode = agent.episode();
/// const rl4sys::Action action = episode.act(queue);          // about a microsecond; no network, no allocation
/// serve(action ? action.choice() : my_own_choice());
/// episode.reward(-latency);                                   // now, later, or several times
/// episode.end(last_queue, rl4sys::Ending::Terminated);
/// @endcode
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "rl4sys/action_structure.hpp"
#include "rl4sys/client_level.hpp"
#include "rl4sys/ending.hpp"
#include "rl4sys/fallback.hpp"
#include "rl4sys/health.hpp"
#include "rl4sys/observation.hpp"
#include "rl4sys/settings.hpp"

namespace rl4sys {

namespace client {
class Core;
class Lane;
}  // namespace client

/// There is no policy to act with: the server is unreachable or refuses, and there is no cache and no fallback.
class ConnectError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// Why `act` gave no action.
enum class Problem : std::uint8_t {
    None,
    /// The observation or the mask does not fit the policy. Nothing of it was recorded.
    BadObservation,
    /// The mask forbids every choice.
    NothingAllowed,
    /// The episode has ended, or its agent is closed.
    EpisodeEnded,
    /// The process was forked after `connect`: threads and connections stayed in the parent.
    Forked,
    /// The policy may not decide at present, and there is no fallback.
    PolicyOff,
    /// The fallback threw, or returned something that is not an action.
    FallbackFailed,
    /// The time of the decision lies before the one before, or only some decisions of the episode have one.
    BadTime,
    /// Anything else, such as lack of memory.
    Failed,
};

/// The value of an action was requested, but there is none.
class NoAction : public std::runtime_error {
public:
    NoAction(Problem cause, const std::string& message) : std::runtime_error(message), problem(cause) {}

    Problem problem;
};

/// A part of an action: choices or numbers. They belong to the episode and are valid until its next decision.
struct ActionValue {
    const std::int64_t* choices = nullptr;  ///< Null where the part is numbers.
    const float* numbers = nullptr;         ///< Null where the part is choices.
    std::size_t size = 0;

    /// Its only choice, or the first of several.
    std::int64_t choice() const { return choices == nullptr ? 0 : choices[0]; }
    /// Its only number, or the first of several.
    float number() const { return numbers == nullptr ? 0.0F : numbers[0]; }
};

/// An action. Its choices or numbers belong to the episode and are valid until its next decision.
class Action {
public:
    /// Whether there is an action. If not, `problem` and `message` say why, and reading its value throws `NoAction`.
    explicit operator bool() const noexcept { return problem_ == Problem::None; }
    Problem problem() const noexcept { return problem_; }
    /// What is wrong and what to do about it; empty if there is an action.
    const std::string& message() const noexcept { return message_; }

    /// One choice, numbered as in the system.
    std::int64_t choice() const {
        require();
        return choice_count_ == 0 ? 0 : choices_[0];
    }
    /// `choice_count()` choices; null where actions are numbers only.
    const std::int64_t* choices() const {
        require();
        return choice_count_ == 0 ? nullptr : choices_;
    }
    /// `number_count()` numbers within their bounds; null where actions are choices only.
    const float* numbers() const {
        require();
        return number_count_ == 0 ? nullptr : numbers_;
    }
    std::size_t choice_count() const noexcept { return choice_count_; }
    std::size_t number_count() const noexcept { return number_count_; }
    /// Choices and numbers together.
    std::size_t size() const noexcept { return choice_count_ + number_count_; }
    /// The part of a structured action: `part("server").choice()`, `part("rate").numbers`.
    /// @throws std::invalid_argument if the settings describe no such part.
    ActionValue part(std::string_view path) const {
        require();
        const ActionPart* found = structure_ == nullptr ? nullptr : structure_->find(path);
        if (found == nullptr) {
            throw_no_part(path);
        }
        return found->is_choice ? ActionValue{choices_ + found->at, nullptr, found->size}
                                : ActionValue{nullptr, numbers_ + found->at, found->size};
    }
    /// The id of this decision within its episode, for late rewards.
    std::int64_t decision() const noexcept { return decision_; }
    /// Whether the fallback chose this action.
    bool is_fallback() const noexcept { return is_fallback_; }
    /// The version of the policy that decided; nothing if something else did.
    std::optional<std::uint64_t> version() const noexcept { return version_; }
    /// The logarithm of the probability of this action, for policies that draw it and are recorded with it.
    std::optional<float> log_prob() const noexcept { return log_prob_; }

private:
    friend class client::Lane;
    friend class Episode;

    void require() const {
        if (problem_ != Problem::None) {
            throw_no_action();
        }
    }
    // In the library, so that programs compiled with -fno-exceptions can use this header; there they end the program.
    [[noreturn]] void throw_no_action() const;
    [[noreturn]] static void throw_no_part(std::string_view path);

    Problem problem_ = Problem::None;
    bool is_fallback_ = false;
    const std::int64_t* choices_ = nullptr;
    const float* numbers_ = nullptr;
    std::size_t choice_count_ = 0;
    std::size_t number_count_ = 0;
    const ActionStructure* structure_ = nullptr;
    std::int64_t decision_ = -1;
    std::optional<std::uint64_t> version_;
    std::optional<float> log_prob_;
    std::string message_;
};

/// One episode: act, reward, end. Rewards may come from another thread than decisions.
///
/// An episode that was moved from is like one that has ended: `act` gives `Problem::EpisodeEnded`, `end` does nothing.
/// Nothing here waits for the network. A segment is cut when it is full, when new weights arrive and when the
/// episode ends. It is sent once all its decisions have left the `reward_window`.
class Episode {
public:
    Episode(Episode&& other) noexcept = default;
    /// Truncates the episode that this handle had before.
    Episode& operator=(Episode&& other) noexcept;
    /// Truncates the episode unless it has ended.
    ~Episode();

    /// Choose the action for an observation. Never throws; it waits only while everything is full and `overflow` is
    /// `block`, and with `decide: server` for the server, up to `decide_timeout`. After the first few segments it
    /// allocates nothing, unless the server decides.
    /// @param observation one array, or several by name: `{{"queue", queue}, {"load", load}}`.
    /// @param mask which choices are allowed (not 0); all where it is absent.
    ///
    /// An observation that cannot be used (NaN, infinity, a missing array, a wrong shape), or for which the policy's
    /// decision is not finite, is left to the setting `on_bad_input`. Only that decision is left out of the record.
    /// @param now seconds of a clock that never goes back, for every decision of an episode or for none: a learner with
    ///        a `horizon` discounts by the time between decisions.
    Action act(const Observation& observation, ArrayView mask = {}, std::optional<double> now = std::nullopt) noexcept;

    /// Record a decision that the system took by itself, without asking the policy: the learner may imitate it.
    ///
    /// Before the first policy has arrived it is not recorded, as the arrays of a decision are not known yet.
    /// @throws std::invalid_argument for an action outside the space or one that the mask excludes, and with
    ///         `on_bad_input: raise` for an observation that does not fit; std::logic_error after the end.
    void took(const Observation& observation, const FallbackAction& action, ArrayView mask = {},
              std::optional<double> now = std::nullopt);

    /// Add to the reward of the latest decision. @throws std::invalid_argument if it is not finite or there is none.
    void reward(double value);
    /// Add to the reward of the decision with this id. A reward that is too late is counted in `late_rewards`.
    /// @param is_final no more rewards come for it: a segment of such decisions is sent at once.
    void reward(double value, std::int64_t decision, bool is_final = false);

    /// End the episode; a second call changes nothing.
    ///
    /// After a truncation, learning needs the final observation to bootstrap from. Without one the last decision is not
    /// sent, since its outcome is unknown, and counted under `no_final_observation`.
    /// @throws std::invalid_argument for an ending that continues, and with `on_bad_input: raise` for an observation
    ///         that does not fit the policy; otherwise such an observation counts as unknown.
    /// @param now where decisions have times, that of the final observation; without it no time counts as elapsed.
    void end(const Observation& final_observation = {}, Ending ending = Ending::Terminated, ArrayView mask = {},
             std::optional<double> now = std::nullopt);

    /// The id of the latest decision; -1 before the first.
    std::int64_t decision() const noexcept;
    bool ended() const noexcept;

private:
    friend class Agent;
    friend class RL4SysTrajectory;
    /// @throws std::logic_error if it was moved from, or in a forked process.
    void require_open() const;
    /// Take the latest decision out of the record, if it is this one.
    void withdraw(std::int64_t decision);
    Episode(std::shared_ptr<client::Core> core, client::Lane& lane, std::uint64_t number);

    std::shared_ptr<client::Core> core_;
    client::Lane* lane_;
    std::uint64_t number_;
};

/// Starts episodes; background threads encode, send and receive. Thread-safe. Created by `connect`.
///
/// In a process that was forked after `connect`, and after it was moved from, calls throw std::logic_error; `close` and
/// the destructor do nothing there.
/// Memory is bounded: `outbox_bytes` for unsent experience, a quarter of that for segments not encoded yet, as much
/// again for spare buffers, and for each lane (as many as episodes were ever open at once) buffers of
/// `max_segment_length` steps and the weights of its last decision.
class Agent {
public:
    explicit Agent(std::shared_ptr<client::Core> core);
    Agent(Agent&& other) noexcept = default;
    Agent& operator=(Agent&& other) noexcept;
    /// Calls `close`.
    ~Agent();

    /// Start an episode. @throws std::logic_error after `close`, or in a forked process.
    Episode episode();
    /// Choose an action for each of several open episodes of this agent, in this order, with one run of the policy.
    ///
    /// The choices, and what is recorded, are those of `Episode::act` for each; so is what happens to an observation
    /// that cannot be used, which concerns no other episode.
    /// @param masks one for each episode, or none at all.
    /// @param now that of `Episode::act`, for all of them.
    /// @throws std::invalid_argument unless there are as many observations (and masks) as episodes, all of this agent.
    std::vector<Action> act_many(const std::vector<Episode*>& episodes, const std::vector<Observation>& observations,
                                 const std::vector<ArrayView>& masks = {}, std::optional<double> now = std::nullopt);
    /// The present state of this agent.
    Health health() const;
    /// How much of this agent works.
    ClientLevel level() const noexcept;
    /// Change it while it runs, to find what each part costs. @throws std::invalid_argument for `Off` without a
    /// fallback.
    void set_level(ClientLevel level);
    /// Send all sealed segments and wait until the server acknowledged them; false after `timeout` seconds.
    bool flush(double timeout = 10.0);
    /// Truncate open episodes, send the backlog for up to `timeout` seconds (else `close_timeout`), and stop.
    ///
    /// Gives up at once when the server cannot be reached. Unsent segments stay in an outbox on disk for the next
    /// start; those in memory are lost and counted as drops.
    void close(std::optional<double> timeout = std::nullopt) noexcept;
    /// Whether the policy decides, not the fallback.
    bool has_policy() const noexcept;
    const ClientSettings& settings() const noexcept;

private:
    /// @throws std::logic_error if it was moved from, or in a forked process.
    client::Core& core() const;

    std::shared_ptr<client::Core> core_;
};

/// Connect to the server and return an agent that is ready to act.
///
/// Waits up to `settings.timeout` seconds for the server. After that the agent acts with the policy of an earlier start
/// (`cache`) or with `fallback`, and keeps trying to connect in the background.
/// @throws ConnectError, SettingsError, or std::runtime_error for an outbox that cannot be opened.
Agent connect(const ClientSettings& settings, Fallback fallback = nullptr);

/// The same, with the settings of a JSON file.
Agent connect(const std::filesystem::path& file, Fallback fallback = nullptr);

}  // namespace rl4sys
