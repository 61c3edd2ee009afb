/// A lane: acts, records and takes rewards for consecutive episodes of one stream.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "client/episode_record.hpp"
#include "client/shared_state.hpp"
#include "client/snapshot.hpp"
#include "rl4sys/agent.hpp"
#include "rl4sys/noise.hpp"

namespace rl4sys::client {

/// One lane. Consecutive episodes use it; a handle of an earlier episode has an outdated number and is refused.
class Lane {
public:
    Lane(const SharedState& shared, std::uint64_t index, std::uint64_t first_episode);

    std::uint64_t index() const { return index_; }
    /// Decisions of the policy in this lane: the step for which random numbers are drawn. It may be slightly out of
    /// date.
    std::uint64_t decisions() const { return steps_.load(std::memory_order_relaxed); }

    /// Start the next episode, and return its number.
    std::uint64_t begin();
    Action act(std::uint64_t episode, const Observation& observation, ArrayView mask,
               std::optional<double> now) noexcept;
    /// Record a decision that the system took by itself.
    void took(std::uint64_t episode, const Observation& observation, const FallbackAction& action, ArrayView mask,
              std::optional<double> now);

    /// For decisions of several lanes at once. The lane must be locked for all of these but `post`.
    std::unique_lock<std::mutex> lock() const { return std::unique_lock(mutex_); }
    std::int64_t episode_decisions() const { return record_.decisions(); }
    /// Nothing if the policy has to decide, here or on the server; otherwise the action, or why there is none.
    std::optional<Action> observe_for_batch(std::uint64_t episode, const Observation& observation, ArrayView mask,
                                            std::optional<double> now);
    /// What a decision about the present observation needs: the policy, the observation at this place, the memory, and
    /// its random numbers.
    const Snapshot& present_snapshot() { return *record_.buffer().snapshot; }
    const std::byte* present_row(std::size_t place) { return record_.buffer().row(place, record_.buffer().count); }
    const std::vector<float>& carry() const { return carry_; }
    void write_noise(float* noise) const { noise_->at(decisions(), noise); }
    /// Record what the policy decided about the present observation, or decide otherwise where it could not.
    Action take_decision(const Decision& decision, const Observation& observation, ArrayView mask);
    /// What to ask about the present observation.
    AskedRow asked() { return {index_, shared_.first_step + decisions(), &record_.buffer(), &carry_}; }
    /// Record row `row` of what the server decided about the present observation, or decide otherwise.
    Action take_answer(const ServerDecision& decision, std::size_t row, const Observation& observation, ArrayView mask);
    void decided_at(double now) { record_.decided_at(now); }
    void seal_due(std::int64_t before, SegmentBufferList& sealed) { record_.seal_due(before, sealed); }
    void post(SegmentBufferList& sealed, std::uint64_t episode);

    void reward(std::uint64_t episode, double value, std::optional<std::int64_t> decision, bool is_final);
    /// Take the latest decision out of the record, for a program that chooses later what is recorded.
    void withdraw(std::uint64_t episode, std::int64_t decision);
    /// True if this ended the episode; false if it had already ended.
    bool end(std::uint64_t episode, const Observation& final_observation, Ending ending, ArrayView mask,
             std::optional<double> now);
    std::int64_t decision(std::uint64_t episode) const;
    bool ended(std::uint64_t episode) const;
    /// The number of the open episode; nothing between two of them.
    std::optional<std::uint64_t> open_episode() const;

private:
    void read_plan();
    Action act_by_plan(const Observation& observation, ArrayView mask);
    Action act_by_fallback(const ActingPlan& plan, const Observation& observation, ArrayView mask);
    void take_over(const ActingPlan& plan, const Observation& observation, const FallbackAction& action,
                   ArrayView mask);
    void take(const SharedSnapshot& snapshot, const wire::DecidedRow& decided);
    Action act_despite(Problem problem, std::string message, const Observation& observation, ArrayView mask);
    Decision decision_of_policy(ThreadPolicy& policy);
    void remember(const Decision& decision);
    void compare(const ActionAdapter& actions);
    Action present_action() const;
    static Action failed(Problem problem, std::string message);

    const SharedState& shared_;
    std::uint64_t index_;
    mutable std::mutex mutex_;
    std::uint64_t episode_;
    bool ended_ = true;
    bool has_acted_ = false;  ///< Whether `action_` is an action of this episode.
    std::atomic<std::uint64_t> steps_ = 0;
    std::uint64_t generation_ = 0;  ///< Of the plan; 0 before it was read.
    SharedPlan plan_;               ///< Null between two episodes, so that no weights are kept for an idle lane.
    SharedInterface interface_;     ///< Of the latest plan that had a policy.
    std::optional<KeyedNoise> noise_;
    std::vector<float> carry_;
    ActionValues action_;
    std::optional<float> log_prob_;  ///< Of the latest decision of the policy, if it is recorded with one.
    EpisodeRecord record_;
};

}  // namespace rl4sys::client
