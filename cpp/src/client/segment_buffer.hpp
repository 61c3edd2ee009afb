/// Records the steps of a segment until it is encoded; rewards can be added until it is sealed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "client/acting_plan.hpp"
#include "client/action_adapter.hpp"
#include "client/snapshot.hpp"
#include "rl4sys/ending.hpp"
#include "wire/decisions.hpp"
#include "wire/segments.hpp"

namespace rl4sys::client {

/// Columns for the steps of one policy version: a segment has up to `length` of them, of which `rows` fit here. A
/// buffer keeps its size and is reused; a segment that needs more rows moves to a larger one.
///
/// Row `count` of the observations is the present observation, or the final one after the last step.
class SegmentBuffer {
public:
    SegmentBuffer(std::shared_ptr<const wire::SegmentFormat> form, std::size_t length, std::size_t rows);

    /// The rows of the buffer that a segment moves to when `rows` are full.
    static std::size_t rows_after(std::size_t rows, std::size_t length);
    /// The fewest rows of a buffer for so many steps.
    static std::size_t rows_for(std::size_t steps, std::size_t length);

    SharedSnapshot snapshot;
    DecidedBy decided_by = DecidedBy::Policy;
    bool recorded = true;     ///< Whether a segment is made of it.
    double began_at = 0.0;    ///< When it was begun, if segments are cut by time.
    double closed_at = 0.0;   ///< When the last step was taken, if rewards are accepted by time.
    std::uint64_t start = 0;  ///< Index within the episode of the first step.
    std::size_t count = 0;
    std::uint64_t lane = 0;
    std::uint64_t episode = 0;
    Ending ending = Ending::Continues;
    std::unique_ptr<SegmentBuffer> next;  ///< The next buffer of a list.

    const std::shared_ptr<const wire::SegmentFormat>& form() const { return form_; }
    std::size_t length() const { return length_; }
    /// Steps that fit.
    std::size_t rows() const { return rows_; }
    /// Whether another step fits only into a larger buffer.
    bool needs_to_grow() const { return count == rows_ && rows_ < length_; }
    /// Continue the segment of a smaller buffer here.
    void take_over(const SegmentBuffer& smaller);
    /// The approximate size in memory, in bytes.
    std::size_t cost() const;
    /// Index within the episode of the step after the last one.
    std::uint64_t end() const { return start + count; }

    /// Clear the buffer for a new segment of the same format. `carry` is the policy memory before the first step.
    void begin(const ActingPlan& plan, std::uint64_t at, const std::vector<float>& carry);
    /// Use an empty buffer, or one whose policy did not change, under another plan.
    void adopt(const ActingPlan& plan);
    /// One row of the observation array at this place.
    std::byte* row(std::size_t place, std::size_t number) const;
    /// Record the decision for the present row.
    void record(const Decision& decision);
    /// Record a decision of the server for the present row.
    void record(const wire::DecidedRow& decided);
    /// Record an action of the fallback, or of the system itself, for the present row, as `ActionAdapter::row` makes
    /// it.
    void record_given(const ActionValues& row);
    void add_reward(std::size_t step, float value) { reward()[step] += value; }
    /// Note that a step gets no more rewards.
    void settle(std::size_t step);
    /// Whether no step gets any more rewards.
    bool is_settled() const { return settled_count_ == count; }
    /// Note times from the first step on.
    void begin_times();
    bool is_timed() const { return is_timed_; }
    /// Note the time from the last step to the observation that follows it.
    void note_elapsed(float seconds) { elapsed_[count - 1] = seconds; }
    /// Begin with the observation that followed the last step of an earlier buffer.
    void continue_from(const SegmentBuffer& earlier);
    /// Use the last observation as the final one: after a termination its value does not matter.
    void repeat_last();
    /// The bytes of its steps, in the order of the format.
    wire::SegmentView view() const;

private:
    struct Column {
        std::size_t offset = 0;
        std::size_t row_bytes = 0;
    };
    struct Free {
        void operator()(std::byte* block) const { std::free(block); }
    };

    using Block = std::unique_ptr<std::byte, Free>;

    /// The columns are those of the observations, action, reward, extras and carry, in this order.
    const Column& action_column() const { return columns_[form_->observation.size()]; }
    const Column& reward_column() const { return columns_[form_->observation.size() + 1]; }
    const Column* extras_columns() const { return columns_.data() + form_->observation.size() + 2; }
    const Column* carry_columns() const { return extras_columns() + form_->extras.size(); }
    float* reward() const { return reinterpret_cast<float*>(block_.get() + reward_column().offset); }
    std::string_view bytes(const Column& column, std::size_t rows) const;
    /// Place the columns for `rows_` steps, and allocate them.
    Block placed();
    void record(const void* action, float log_prob);
    /// Write the action of the present row, which then has no reward.
    void put_action(const void* action);

    std::shared_ptr<const wire::SegmentFormat> form_;
    std::size_t length_;
    std::size_t rows_;
    std::vector<Column> columns_;
    std::size_t size_ = 0;
    Block block_;
    bool is_timed_ = false;
    std::vector<float> elapsed_;         ///< For `rows_` steps once times are noted.
    std::vector<std::uint8_t> settled_;  ///< Whether each step is, for `rows_` steps once one is.
    std::size_t settled_count_ = 0;
};

/// A linked list of buffers. Adding and removing allocates nothing.
class SegmentBufferList {
public:
    SegmentBufferList() = default;
    SegmentBufferList(SegmentBufferList&& other) noexcept;
    SegmentBufferList& operator=(SegmentBufferList&&) = delete;
    ~SegmentBufferList();

    bool empty() const { return first_ == nullptr; }
    std::size_t size() const { return size_; }
    /// The first buffer, of which `next` leads to the others; null if there is none.
    SegmentBuffer* front() const { return first_.get(); }
    SegmentBuffer* back() const { return last_; }
    void push_back(std::unique_ptr<SegmentBuffer> buffer);
    void push_front(std::unique_ptr<SegmentBuffer> buffer);
    /// The first buffer; there must be one.
    std::unique_ptr<SegmentBuffer> pop_front();

private:
    std::unique_ptr<SegmentBuffer> first_;
    SegmentBuffer* last_ = nullptr;
    std::size_t size_ = 0;
};

}  // namespace rl4sys::client
