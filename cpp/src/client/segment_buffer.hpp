/// Records the steps of a segment until it is encoded; rewards can be added until it is sealed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "client/acting_plan.hpp"
#include "rl4sys/ending.hpp"
#include "wire/segments.hpp"

namespace rl4sys::client {

/// Columns for up to `length` steps of one policy version, allocated once and reused.
///
/// Row `count` of the observations is the present observation, or the final one after the last step.
class SegmentBuffer {
public:
    SegmentBuffer(std::shared_ptr<const wire::SegmentFormat> form, std::size_t length);

    SharedSnapshot snapshot;
    DecidedBy decided_by = DecidedBy::Policy;
    bool recorded = true;     ///< Whether a segment is made of it.
    std::uint64_t start = 0;  ///< Index within the episode of the first step.
    std::size_t count = 0;
    std::uint64_t lane = 0;
    std::uint64_t episode = 0;
    Ending ending = Ending::Continues;
    std::unique_ptr<SegmentBuffer> next;  ///< The next buffer of a list.

    const std::shared_ptr<const wire::SegmentFormat>& form() const { return form_; }
    std::size_t length() const { return length_; }
    /// The approximate size in memory, in bytes.
    std::size_t cost() const;
    /// Index within the episode of the step after the last one.
    std::uint64_t end() const { return start + count; }

    /// Clear the buffer for a new segment of the same format. `carry` is the policy memory before the first step.
    void begin(const ActingPlan& plan, std::uint64_t at, const std::vector<float>& carry, bool is_recorded);
    /// Use an empty buffer, or one whose policy did not change, under another plan.
    void adopt(const ActingPlan& plan);
    /// One row of the observation array at this place.
    std::byte* row(std::size_t place, std::size_t number) const;
    /// Record the decision for the present row.
    void record(const Decision& decision);
    void add_reward(std::size_t step, float value) { reward()[step] += value; }
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

    float* reward() const { return reinterpret_cast<float*>(block_.get() + reward_.offset); }
    std::string_view bytes(const Column& column, std::size_t rows) const;

    std::shared_ptr<const wire::SegmentFormat> form_;
    std::size_t length_;
    std::vector<Column> observation_;
    Column action_;
    Column reward_;
    std::vector<Column> extras_;
    std::vector<Column> carry_;
    std::size_t size_ = 0;
    std::unique_ptr<std::byte, Free> block_;
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
    const SegmentBuffer& front() const { return *first_; }
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
