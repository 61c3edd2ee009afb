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

#include "client/acting_rules.hpp"
#include "client/agent_status.hpp"
#include "client/observation_reader.hpp"
#include "client/segment_queue.hpp"
#include "client/snapshot.hpp"
#include "rl4sys/agent.hpp"
#include "rl4sys/noise.hpp"
#include "rl4sys/policy.hpp"

namespace rl4sys::client {

/// What all lanes of one agent share.
struct SharedState {
    NewestSnapshot& newest;
    SegmentQueue& queue;
    AgentStatus& status;
    const ActingRules& rules;
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
    Action decide(const Observation& observation, ArrayView mask, SegmentBufferList& sealed);
    Action fall_back(const Observation& observation);
    std::string observe(const Observation& observation, ArrayView mask, SegmentBufferList& sealed);
    void adopt(const SharedSnapshot& snapshot);
    void begin_buffer();
    void finish(const Observation& final_observation, Ending ending, ArrayView mask, SegmentBufferList& sealed);
    void seal_all(Ending ending, SegmentBufferList& sealed);
    void seal(std::unique_ptr<SegmentBuffer> buffer, Ending ending, SegmentBufferList& sealed);
    void without_last(const std::string& reason);
    void post(SegmentBufferList& sealed);
    Action acted(const Decision& decision);
    static Action failed(Problem problem, std::string message);

    const SharedState& shared_;
    StreamKey stream_;
    mutable std::mutex mutex_;
    std::uint64_t episode_;
    bool ended_ = true;
    std::int64_t decided_ = 0;     ///< Decisions in this episode.
    std::int64_t unrecorded_ = 0;  ///< The first of them, chosen by the fallback.
    std::atomic<std::uint64_t> steps_ = 0;

    std::uint64_t generation_ = 0;
    SharedSnapshot snapshot_;
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
};

}  // namespace rl4sys::client
