/// @file
/// A policy inside a live system, which learns elsewhere.
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
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "rl4sys/ending.hpp"
#include "rl4sys/health.hpp"
#include "rl4sys/observation.hpp"
#include "rl4sys/settings.hpp"

namespace rl4sys {

namespace client {
class Core;
class Lane;
}  // namespace client

/// There is no policy to act with: the server is away or refuses, and nothing stands in for it.
class ConnectError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// Why `act` gave no action.
enum class Problem : std::uint8_t {
    None,
    /// The observation or the mask is not what the policy was made for. Nothing of it was recorded.
    BadObservation,
    /// The mask forbids every choice.
    NothingAllowed,
    /// The episode is over, or its agent is closed.
    EpisodeEnded,
    /// The process was forked after `connect`: threads and connections stayed in the parent.
    Forked,
    /// Something else, such as no memory or a fallback that threw.
    Failed,
};

/// Asked for the value of an action that is none.
class NoAction : public std::runtime_error {
public:
    NoAction(Problem cause, const std::string& message) : std::runtime_error(message), problem(cause) {}

    Problem problem;
};

/// What to do now. Several choices or numbers lie in the episode and are valid until its next decision.
class Action {
public:
    /// Whether there is an action. If not, `problem` and `message` say why, and asking for its value throws `NoAction`.
    explicit operator bool() const noexcept { return problem_ == Problem::None; }
    Problem problem() const noexcept { return problem_; }
    /// What is wrong and what to do about it; empty if there is an action.
    const std::string& message() const noexcept { return message_; }

    /// One choice, as the system counts it.
    std::int64_t choice() const {
        require();
        return choices_ == nullptr ? 0 : choices_[0];
    }
    /// `size()` choices; null where actions are numbers.
    const std::int64_t* choices() const {
        require();
        return choices_;
    }
    /// `size()` numbers within their bounds; null where actions are choices.
    const float* numbers() const {
        require();
        return numbers_;
    }
    std::size_t size() const noexcept { return size_; }
    /// The id of this decision within its episode, for rewards that come late.
    std::int64_t decision() const noexcept { return decision_; }
    /// Whether the fallback decided, so that nothing is learned from it.
    bool is_fallback() const noexcept { return is_fallback_; }

private:
    friend class client::Lane;

    void require() const {
        if (problem_ != Problem::None) {
            throw NoAction(problem_, message_);
        }
    }

    Problem problem_ = Problem::None;
    bool is_fallback_ = false;
    const std::int64_t* choices_ = nullptr;
    const float* numbers_ = nullptr;
    std::size_t size_ = 0;
    std::int64_t decision_ = -1;
    std::string message_;
};

/// What a fallback decides: choices, or numbers.
struct FallbackAction {
    FallbackAction(std::int64_t choice) : choices{choice} {}  // NOLINT(google-explicit-constructor)
    FallbackAction(std::vector<std::int64_t> several) : choices(std::move(several)) {}  // NOLINT
    FallbackAction(std::vector<float> values) : numbers(std::move(values)) {}           // NOLINT

    std::vector<std::int64_t> choices;
    std::vector<float> numbers;
};

/// Decides about an observation, as the system passed it, while there is no policy yet.
using Fallback = std::function<FallbackAction(const Observation& observation)>;

/// One episode: act, reward, end. Rewards may come from another thread than decisions.
///
/// Nothing here waits for the network. Experience is cut when a segment is full, when new weights arrived and when the
/// episode ends; it is sent once its last decision is older than the newest `reward_window` ones.
class Episode {
public:
    Episode(Episode&& other) noexcept = default;
    /// Ends the episode that was here before as truncated.
    Episode& operator=(Episode&& other) noexcept;
    /// Ends the episode as truncated, unless it has ended.
    ~Episode();

    /// The action for what is observed now. Never throws; it waits only where everything is full and `overflow` is
    /// `block`. After the first few segments it allocates nothing.
    /// @param observation one array, or several by name: `{{"queue", queue}, {"load", load}}`.
    /// @param mask which choices are allowed (not 0); all where it is absent.
    Action act(const Observation& observation, ArrayView mask = {}) noexcept;

    /// Add to the reward of the latest decision. @throws std::invalid_argument if it is not finite or there is none.
    void reward(double value);
    /// Add to the reward of the decision with this id. One that was sent already is counted in `late_rewards`.
    void reward(double value, std::int64_t decision);

    /// The episode is over; ending it again changes nothing.
    ///
    /// After a truncation the value of what followed counts. If it was not observed, the last decision is not sent,
    /// since what it led to is unknown; it is counted under `no_final_observation`.
    /// @throws std::invalid_argument for an observation that is not what the policy was made for, or an episode that
    ///         continues.
    void end(const Observation& final_observation = {}, Ending ending = Ending::Terminated, ArrayView mask = {});

    /// The id of the latest decision; -1 before the first.
    std::int64_t decision() const noexcept;
    bool ended() const noexcept;

private:
    friend class Agent;
    Episode(std::shared_ptr<client::Core> core, client::Lane& lane, std::uint64_t number);

    std::shared_ptr<client::Core> core_;
    client::Lane* lane_;
    std::uint64_t number_;
};

/// Hands out episodes; threads behind it pack, send and fetch. Any thread may use it. Made by `connect`.
///
/// Memory: `outbox_bytes` for what waits, a fourth of that for what is about to be packed, as much again for columns
/// that are used in turn, and for each lane (as many as episodes were ever open at once) the columns of
/// `max_segment_length` steps and the weights that it last decided with.
class Agent {
public:
    explicit Agent(std::shared_ptr<client::Core> core);
    Agent(Agent&& other) noexcept = default;
    Agent& operator=(Agent&& other) noexcept;
    /// Closes.
    ~Agent();

    /// A new episode, in a lane of its own. @throws std::logic_error after `close`, or in a forked process.
    Episode episode();
    /// The state of things now.
    Health health() const;
    /// Send what is sealed, and wait until the server has it; false if it did not in `timeout` seconds.
    bool flush(double timeout = 10.0);
    /// End what is open as truncated, send what there is for up to `timeout` seconds, and stop.
    ///
    /// What could not be sent stays in an outbox on disk for the next start; in memory it is lost, and counted.
    void close(double timeout = 10.0) noexcept;
    /// Whether decisions are the policy's, not the fallback's.
    bool has_policy() const noexcept;
    const ClientSettings& settings() const noexcept;

private:
    std::shared_ptr<client::Core> core_;
};

/// An agent that is ready to act.
///
/// It waits up to `settings.timeout` seconds for the server. After that it goes on with the policy of an earlier start
/// (`cache`) or with `fallback`, and keeps trying in the background.
/// @throws ConnectError, SettingsError, or std::runtime_error for an outbox that cannot be opened.
Agent connect(const ClientSettings& settings, Fallback fallback = nullptr);

/// The same, with the settings of a JSON file.
Agent connect(const std::filesystem::path& file, Fallback fallback = nullptr);

}  // namespace rl4sys
