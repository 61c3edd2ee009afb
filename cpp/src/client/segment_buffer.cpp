#include "client/segment_buffer.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace rl4sys::client {
namespace {

constexpr std::size_t alignment = 16;
constexpr std::size_t growth = 4;

}  // namespace

SegmentBuffer::SegmentBuffer(std::shared_ptr<const wire::SegmentFormat> form, std::size_t length, std::size_t rows)
    : form_(std::move(form)), length_(length), rows_(rows) {
    columns_.resize(form_->observation.size() + 2 + form_->extras.size() + form_->carry.size());
    block_ = placed();
}

SegmentBuffer::Block SegmentBuffer::placed() {
    size_ = 0;
    auto column = columns_.begin();
    const auto place = [&](std::size_t row_bytes, std::size_t rows) {
        *column++ = {size_, row_bytes};
        size_ += (row_bytes * rows + alignment - 1) / alignment * alignment;
    };
    for (const ArraySpec& spec : form_->observation) {
        place(spec.bytes(), rows_ + 1);
    }
    place(form_->action.bytes(), rows_);
    place(sizeof(float), rows_);
    for (const ArraySpec& spec : form_->extras) {
        place(spec.bytes(), rows_);
    }
    for (const ArraySpec& spec : form_->carry) {
        // The carry is contiguous, as in the policy.
        *column++ = {size_, spec.bytes()};
        size_ += spec.bytes();
    }
    Block block(static_cast<std::byte*>(std::calloc(size_, 1)));
    if (!block) {
        throw std::bad_alloc();
    }
    return block;
}

std::size_t SegmentBuffer::rows_after(std::size_t rows, std::size_t length) {
    return std::min(length, growth * rows);
}

std::size_t SegmentBuffer::rows_for(std::size_t steps, std::size_t length) {
    std::size_t rows = 1;
    while (rows < steps && rows < length) {
        rows = rows_after(rows, length);
    }
    return rows;
}

void SegmentBuffer::take_over(const SegmentBuffer& smaller) {
    snapshot = smaller.snapshot;
    decided_by = smaller.decided_by;
    recorded = smaller.recorded;
    began_at = smaller.began_at;
    start = smaller.start;
    count = smaller.count;
    ending = Ending::Continues;
    const std::size_t carry = columns_.size() - form_->carry.size();
    for (std::size_t place = 0; place < columns_.size(); ++place) {
        const std::size_t copied = place < carry ? count : 1;
        std::memcpy(block_.get() + columns_[place].offset, smaller.block_.get() + smaller.columns_[place].offset,
                    copied * columns_[place].row_bytes);
    }
    is_timed_ = smaller.is_timed_;
    if (is_timed_) {
        elapsed_.resize(rows_, 0.0F);
        std::copy_n(smaller.elapsed_.begin(), count, elapsed_.begin());
    }
    settled_count_ = smaller.settled_count_;
    std::fill(settled_.begin(), settled_.end(), std::uint8_t{0});
    if (settled_count_ > 0) {
        settled_.resize(rows_, 0);
        std::copy_n(smaller.settled_.begin(), count, settled_.begin());
    }
}

std::size_t SegmentBuffer::cost() const {
    return sizeof(SegmentBuffer) + columns_.size() * sizeof(Column) + size_;
}

void SegmentBuffer::begin(const ActingPlan& plan, std::uint64_t at, const std::vector<float>& carry) {
    adopt(plan);
    recorded = true;
    start = at;
    count = 0;
    ending = Ending::Continues;
    is_timed_ = false;
    settled_count_ = 0;
    std::fill(settled_.begin(), settled_.end(), std::uint8_t{0});
    if (!carry.empty()) {
        std::memcpy(block_.get() + carry_columns()->offset, carry.data(), carry.size() * sizeof(float));
    }
}

void SegmentBuffer::adopt(const ActingPlan& plan) {
    snapshot = plan.snapshot;
    decided_by = plan.decided_by;
}

std::byte* SegmentBuffer::row(std::size_t place, std::size_t number) const {
    const Column& column = columns_[place];
    return block_.get() + column.offset + number * column.row_bytes;
}

void SegmentBuffer::record(const Decision& decision) {
    record(decision.choices != nullptr ? static_cast<const void*>(decision.choices) : decision.numbers,
           decision.log_prob);
}

void SegmentBuffer::record_given(const ActionValues& row) {
    record(row.choices.empty() ? static_cast<const void*>(row.numbers.data()) : row.choices.data(), 0.0F);
}

void SegmentBuffer::record(const wire::DecidedRow& decided) {
    put_action(decided.choices.empty() ? static_cast<const void*>(decided.numbers.data()) : decided.choices.data());
    for (std::size_t place = 0; place < form_->extras.size(); ++place) {
        const Column& column = extras_columns()[place];
        std::memcpy(block_.get() + column.offset + count * column.row_bytes, decided.extras[place].data(),
                    column.row_bytes);
    }
    ++count;
}

void SegmentBuffer::put_action(const void* action) {
    const Column& column = action_column();
    std::memcpy(block_.get() + column.offset + count * column.row_bytes, action, column.row_bytes);
    reward()[count] = 0.0F;
}

void SegmentBuffer::record(const void* action, float log_prob) {
    put_action(action);
    for (std::size_t place = 0; place < form_->extras.size(); ++place) {
        std::memcpy(block_.get() + extras_columns()[place].offset + count * sizeof(float), &log_prob, sizeof(float));
    }
    ++count;
}

void SegmentBuffer::settle(std::size_t step) {
    settled_.resize(rows_, 0);
    if (settled_[step] == 0) {
        settled_[step] = 1;
        ++settled_count_;
    }
}

void SegmentBuffer::begin_times() {
    is_timed_ = true;
    elapsed_.resize(rows_, 0.0F);
}

void SegmentBuffer::continue_from(const SegmentBuffer& earlier) {
    for (std::size_t place = 0; place < form_->observation.size(); ++place) {
        std::memcpy(row(place, 0), earlier.row(place, earlier.count), columns_[place].row_bytes);
    }
}

void SegmentBuffer::repeat_last() {
    for (std::size_t place = 0; place < form_->observation.size() && count > 0; ++place) {
        std::memcpy(row(place, count), row(place, count - 1), columns_[place].row_bytes);
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
    view.steps = static_cast<std::uint32_t>(count);
    view.decided_by_fallback = decided_by == DecidedBy::Fallback;
    view.decided_by_incumbent = decided_by == DecidedBy::Incumbent;
    if (is_timed_) {
        view.elapsed = {reinterpret_cast<const char*>(elapsed_.data()), count * sizeof(float)};
    }
    for (std::size_t place = 0; place < form_->observation.size(); ++place) {
        view.observation.push_back(bytes(columns_[place], count + 1));
    }
    view.action = bytes(action_column(), count);
    view.reward = bytes(reward_column(), count);
    for (std::size_t place = 0; place < form_->extras.size(); ++place) {
        view.extras.push_back(bytes(extras_columns()[place], count));
    }
    for (std::size_t place = 0; place < form_->carry.size(); ++place) {
        view.carry.push_back(bytes(carry_columns()[place], 1));
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
