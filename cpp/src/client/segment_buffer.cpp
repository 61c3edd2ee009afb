#include "client/segment_buffer.hpp"

#include <cstring>
#include <new>
#include <utility>

namespace rl4sys::client {
namespace {

constexpr std::size_t alignment = 64;

}  // namespace

SegmentBuffer::SegmentBuffer(std::shared_ptr<const wire::SegmentFormat> form, std::size_t length)
    : form_(std::move(form)), length_(length) {
    const auto place = [this](std::size_t row_bytes, std::size_t rows) {
        const Column column{size_, row_bytes};
        size_ += (row_bytes * rows + alignment - 1) / alignment * alignment;
        return column;
    };
    for (const ArraySpec& spec : form_->observation) {
        observation_.push_back(place(spec.bytes(), length + 1));
    }
    action_ = place(form_->action.bytes(), length);
    reward_ = place(sizeof(float), length);
    for (const ArraySpec& spec : form_->extras) {
        extras_.push_back(place(spec.bytes(), length));
    }
    for (const ArraySpec& spec : form_->carry) {
        // The carry is contiguous, as in the policy.
        carry_.push_back({carry_.empty() ? size_ : carry_.back().offset + carry_.back().row_bytes, spec.bytes()});
    }
    if (!carry_.empty()) {
        size_ = carry_.back().offset + carry_.back().row_bytes;
    }
    // Pages that are never written cost nothing: episodes may be far shorter than the buffer.
    block_.reset(static_cast<std::byte*>(std::calloc(size_, 1)));
    if (!block_) {
        throw std::bad_alloc();
    }
}

std::size_t SegmentBuffer::cost() const {
    return sizeof(SegmentBuffer) + size_;
}

void SegmentBuffer::adopt(const ActingPlan& plan) {
    snapshot = plan.snapshot;
    decided_by = plan.decided_by;
}

void SegmentBuffer::begin(const ActingPlan& plan, std::uint64_t at, const std::vector<float>& carry, bool is_recorded) {
    adopt(plan);
    recorded = is_recorded;
    start = at;
    count = 0;
    ending = Ending::Continues;
    if (!carry_.empty()) {
        std::memcpy(block_.get() + carry_.front().offset, carry.data(), carry.size() * sizeof(float));
    }
}

std::byte* SegmentBuffer::row(std::size_t place, std::size_t number) const {
    const Column& column = observation_[place];
    return block_.get() + column.offset + number * column.row_bytes;
}

void SegmentBuffer::record(const Decision& decision) {
    const void* chosen = decision.choices != nullptr ? static_cast<const void*>(decision.choices) : decision.numbers;
    std::memcpy(block_.get() + action_.offset + count * action_.row_bytes, chosen, action_.row_bytes);
    for (const Column& column : extras_) {
        std::memcpy(block_.get() + column.offset + count * sizeof(float), &decision.log_prob, sizeof(float));
    }
    reward()[count] = 0.0F;
    ++count;
}

void SegmentBuffer::continue_from(const SegmentBuffer& earlier) {
    for (std::size_t place = 0; place < observation_.size(); ++place) {
        std::memcpy(row(place, 0), earlier.row(place, earlier.count), observation_[place].row_bytes);
    }
}

void SegmentBuffer::repeat_last() {
    for (std::size_t place = 0; place < observation_.size() && count > 0; ++place) {
        std::memcpy(row(place, count), row(place, count - 1), observation_[place].row_bytes);
    }
}

wire::SegmentView SegmentBuffer::view() const {
    wire::SegmentView view;
    view.agent = "agent";
    view.lane = lane;
    view.episode = episode;
    view.start = start;
    view.policy_version = snapshot->version;
    view.ending = ending;
    view.decided_by_fallback = decided_by == DecidedBy::Fallback;
    view.steps = static_cast<std::uint32_t>(count);
    for (const Column& column : observation_) {
        view.observation.push_back(bytes(column, count + 1));
    }
    view.action = bytes(action_, count);
    view.reward = bytes(reward_, count);
    for (const Column& column : extras_) {
        view.extras.push_back(bytes(column, count));
    }
    for (const Column& column : carry_) {
        view.carry.push_back(bytes(column, 1));
    }
    return view;
}

std::string_view SegmentBuffer::bytes(const Column& column, std::size_t rows) const {
    return {reinterpret_cast<const char*>(block_.get() + column.offset), rows * column.row_bytes};
}

SegmentBufferList::SegmentBufferList(SegmentBufferList&& other) noexcept
    : first_(std::move(other.first_)),
      last_(std::exchange(other.last_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

SegmentBufferList::~SegmentBufferList() {
    // One by one: destroying a long list recursively could exhaust the stack.
    while (!empty()) {
        pop_front();
    }
}

void SegmentBufferList::push_back(std::unique_ptr<SegmentBuffer> buffer) {
    SegmentBuffer* added = buffer.get();
    (empty() ? first_ : last_->next) = std::move(buffer);
    last_ = added;
    ++size_;
}

void SegmentBufferList::push_front(std::unique_ptr<SegmentBuffer> buffer) {
    if (empty()) {
        last_ = buffer.get();
    }
    buffer->next = std::move(first_);
    first_ = std::move(buffer);
    ++size_;
}

std::unique_ptr<SegmentBuffer> SegmentBufferList::pop_front() {
    std::unique_ptr<SegmentBuffer> buffer = std::move(first_);
    first_ = std::move(buffer->next);
    if (!first_) {
        last_ = nullptr;
    }
    --size_;
    return buffer;
}

}  // namespace rl4sys::client
