/// A lane: acts, records and takes rewards for consecutive episodes of one stream.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "client/agent_status.hpp"
#include "client/decision_times.hpp"
#include "client/governor.hpp"
#include "client/observation_reader.hpp"
#include "client/segment_queue.hpp"
#include "client/thinning.hpp"
#include "rl4sys/agent.hpp"
#include "rl4sys/noise.hpp"
#include "rl4sys/policy.hpp"

namespace rl4sys::client {

/// What all lanes of one agent share.
struct SharedState {
    const Governor& governor;
    SegmentQueue& queue;
    AgentStatus& status;
    Thinning& thinning;
    DecisionTimes& times;
    std::size_t longest = 0;  ///< Most steps of one segment.
    std::size_t reward_window = 0;
    Fallback fallback;
    std::uint64_t seed = 0;
    std::uint64_t forks = 0;
};

/// One lane. Consecutive episodes use it; a handle of an earlier episode has an outdated number and is refused.
class Lane {
public:
    Lane(const SharedState& shared, StreamKey stream, std::uint64_t first_episode);

    std::uint64_t index() const { return stream_.lane; }
    /// Decisions taken in this lane: the step for which random numbers are drawn. It may be slightly out of date.
    std::uint64_t decisions() const { return steps_.load(std::memory_order_relaxed); }

    /// Start the next episode, and return its number.
    std::uint64_t begin();
    Action act(std::uint64_t episode, const Observation& observation, ArrayView mask) noexcept;
    void reward(std::uint64_t episode, double value, std::optional<std::int64_t> decision);
    /// True if this ended the episode; false if it had already ended.
    bool end(std::uint64_t episode, const Observation& final_observation, Ending ending, ArrayView mask);
    std::int64_t decision(std::uint64_t episode) const;
    bool ended(std::uint64_t episode) const;

private:
    /// Decisions from `first`, up to but without `after`.
    struct Gap {
        std::int64_t first = 0;
        std::int64_t after = 0;
    };

    Action act_by_plan(const Observation& observation, ArrayView mask);
    Action act_by_fallback(const Observation& observation, ArrayView mask);
    Decision decision_of_policy();
    Action decide();
    std::string observe(const Observation& observation, ArrayView mask);
    void adopt(SharedPlan plan);
    void begin_buffer();
    std::unique_ptr<SegmentBuffer> blank(bool recorded);
    bool records();
    bool is_another(const SegmentBuffer& buffer) const;
    void leave_out();
    void close(Ending ending);
    void skip(std::int64_t first, std::int64_t after);
    void finish(const Observation& final_observation, Ending ending, ArrayView mask);
    void seal_due(std::int64_t decisions, SegmentBufferList& sealed);
    void seal(std::unique_ptr<SegmentBuffer> buffer, SegmentBufferList& sealed);
    void without_last(const std::string& reason);
    void post(SegmentBufferList& sealed);
    Action acted(const Decision& decision);
    static Action failed(Problem problem, std::string message);

    const SharedState& shared_;
    StreamKey stream_;
    mutable std::mutex mutex_;
    std::uint64_t episode_;
    bool ended_ = true;
    std::int64_t decided_ = 0;  ///< Decisions in this episode.
    std::vector<Gap> gaps_;     ///< The latest ranges of decisions that are not recorded.
    bool is_thinned_ = false;
    std::int64_t span_end_ = 0;  ///< The decision before which it is asked again whether to record.
    std::atomic<std::uint64_t> steps_ = 0;

    std::uint64_t generation_ = 0;
    SharedPlan plan_;
    SharedSnapshot snapshot_;  ///< The policy that is loaded; null before the first one.
    std::optional<Policy> policy_;
    std::shared_ptr<const PolicySpec> policy_spec_;
    std::optional<KeyedNoise> noise_;
    std::vector<float> noise_numbers_;

    std::shared_ptr<const wire::SegmentFormat> form_;
    ObservationReader reader_;
    std::unique_ptr<SegmentBuffer> buffer_;
    std::vector<std::unique_ptr<SegmentBuffer>> held_;  ///< Cut, and still open for rewards; oldest first.
    std::vector<float> carry_;
    std::vector<const void*> rows_;

    std::int64_t first_choice_ = 0;  ///< The number of choice 0 in the system.
    std::vector<float> least_;
    std::vector<float> most_;
    std::vector<std::int64_t> choices_;
    std::vector<float> numbers_;
    std::optional<FallbackAction> fallback_action_;  ///< The latest action of the fallback.
};

}  // namespace rl4sys::client
