/// Steps that were taken and not yet packed, in columns that are allocated once and used again and again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "client/snapshot.hpp"
#include "rl4sys/ending.hpp"
#include "wire/segments.hpp"

namespace rl4sys::client {

/// Columns for up to `length` steps of one version. Rewards can be added until it is sealed and left to the encoder.
///
/// Row `count` of the observations is what is being decided about, or what followed the last step.
class SegmentBuffer {
public:
    SegmentBuffer(std::shared_ptr<const wire::SegmentFormat> form, std::size_t length);

    SharedSnapshot snapshot;
    std::uint64_t start = 0;  ///< Index within the episode of the first step.
    std::size_t count = 0;
    std::uint64_t lane = 0;
    std::uint64_t episode = 0;
    Ending ending = Ending::Continues;
    std::unique_ptr<SegmentBuffer> next;  ///< In a chain of buffers.

    const std::shared_ptr<const wire::SegmentFormat>& form() const { return form_; }
    std::size_t length() const { return length_; }
    /// Bytes that it takes in memory, about.
    std::size_t cost() const;
    /// Index within the episode of the step after the last one.
    std::uint64_t end() const { return start + count; }

    /// Forget everything; the format must be the same. `carry` is the policy memory before the first step.
    void begin(SharedSnapshot with, std::uint64_t at, const std::vector<float>& carry);
    /// One row of the observation array at this place.
    std::byte* row(std::size_t place, std::size_t number) const;
    /// Note what was decided about the present row.
    void record(const Decision& decision);
    void add_reward(std::size_t step, float value) { reward()[step] += value; }
    /// What followed the last step of the earlier buffer is what this one starts with.
    void continue_from(const SegmentBuffer& earlier);
    /// After a termination nobody asks for the value of what followed; the last observation stands in.
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

/// Buffers one behind the other. Adding and removing allocates nothing.
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
