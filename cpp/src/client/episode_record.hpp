/// What an episode has recorded and not sent yet: its present segment, and those that wait for rewards.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/acting_plan.hpp"
#include "client/segment_buffer.hpp"
#include "client/shared_state.hpp"

namespace rl4sys::client {

/// The decisions of one episode after another. Not thread-safe: the lock of the lane protects it.
///
/// A segment is cut when it is full, when new weights arrive, when something else decides and when the episode ends. It
/// is sealed once all its decisions have left the reward window.
class EpisodeRecord {
public:
    /// Ranges of unrecorded decisions that an episode remembers.
    static constexpr std::size_t most_gaps = 16;

    explicit EpisodeRecord(const SharedState& shared) : shared_(shared) {}

    /// Start the next episode.
    void begin();
    /// Decisions taken in this episode.
    std::int64_t decisions() const { return decisions_; }
    /// Write the observation into the present row of `buffer()`; a segment that is complete is held back for rewards.
    /// Returns what is wrong, or an empty string. `carry` is the policy memory before the decision.
    std::string observe(const ActingPlan& plan, const Observation& observation, ArrayView mask,
                        const std::vector<float>& carry);
    /// As `observe`, while it is not known what will decide: the present segment continues until `decided_with`.
    std::string observe_undecided(const ActingPlan& plan, const Observation& observation, ArrayView mask,
                                  const std::vector<float>& carry);
    /// Assign the present observation to a decision by this plan; another version cuts the segment.
    void decided_with(const ActingPlan& plan, const std::vector<float>& carry);
    /// The buffer with the observation; there must be one.
    SegmentBuffer& buffer() { return *buffer_; }
    /// What is wrong with these choices, counted from 0, in the present row: one that is not there or that the mask
    /// excludes; empty if nothing is.
    std::string refused(const std::vector<std::int64_t>& choices) const;
    /// Note that the decision for the present row was recorded in the buffer.
    void took() { ++decisions_; }
    /// Take a decision that is not recorded; what was recorded before it ends here.
    void leave_out();
    /// Take the latest decision out of the record, for a program that chooses later what is recorded.
    void withdraw(std::int64_t decision);
    /// Add to the reward of a decision of this episode; false, and counted, if it is too late.
    bool reward(std::int64_t decision, float value);
    /// Note that a decision gets no more rewards, and move segments that wait for none now to `sealed`.
    void settle(std::int64_t decision, SegmentBufferList& sealed);
    /// Note the time between the latest decision and what follows it; before every attempt. Returns what is wrong, or
    /// an empty string.
    std::string follow(std::optional<double> now);
    /// Note when the latest decision was taken.
    void decided_at(double now);
    /// Whether the decisions of this episode have times.
    bool has_times() const { return now_.has_value(); }
    /// Complete the last segment. Returns what is wrong with the final observation, or an empty string; then it is
    /// treated as unknown if `despite` holds, and otherwise nothing happens.
    std::string finish(const Observation& final_observation, Ending ending, ArrayView mask, bool despite);
    /// Move the segments that have left the reward window after so many decisions to `sealed`; at the end, all.
    void seal_due(std::int64_t decisions, SegmentBufferList& sealed);
    void seal_all(SegmentBufferList& sealed);

private:
    bool records(const ActingPlan& plan);
    bool is_another(const ActingPlan& plan) const;
    bool is_complete(const SegmentBuffer& buffer) const;
    bool is_due(const SegmentBuffer& buffer, std::int64_t decisions) const;
    /// An array of the present row by its name; nullptr if the policy does not observe it.
    const std::byte* observed(std::string_view name) const;
    /// Most steps of a segment.
    std::size_t longest(const Snapshot& snapshot) const;
    /// A buffer for a segment that begins now; so many steps fit at least.
    std::unique_ptr<SegmentBuffer> taken(const ActingPlan& plan, const std::vector<float>& carry, std::size_t steps);
    /// Move the present segment to a larger buffer.
    void grow();
    void close(Ending ending);
    void skip(std::int64_t first, std::int64_t after);
    void without_last(const char* reason);

    const SharedState& shared_;
    std::int64_t decisions_ = 0;
    std::int64_t span_end_ = 0;  ///< The decision before which it is asked again whether to record.
    bool is_thinned_ = false;
    std::optional<double> now_;  ///< When the latest decision was taken; nothing if the system gives no times.
    std::unique_ptr<SegmentBuffer> buffer_;
    SegmentBufferList held_;  ///< Complete, and still open for rewards; oldest first.
    /// The latest ranges of decisions that are not recorded, to tell their rewards from late ones.
    std::array<std::pair<std::int64_t, std::int64_t>, most_gaps> gaps_;
    std::size_t gap_count_ = 0;
};

}  // namespace rl4sys::client
