#include "client/segment_queue.hpp"

#include <algorithm>
#include <utility>

#include "client/clock.hpp"

namespace rl4sys::client {
namespace {

constexpr std::size_t most_reserved = 64;                          // Buffers of one size that `replenish` makes,
constexpr std::size_t most_reserved_bytes = std::size_t{1} << 20;  // and their bytes.

/// 0 for one row, and one more for each time that a segment moved to a larger buffer.
std::size_t size_class(std::size_t rows) {
    std::size_t number = 0;
    for (std::size_t fits = 1; fits < rows; fits = SegmentBuffer::rows_after(fits, rows)) {
        ++number;
    }
    return number;
}

}  // namespace

SegmentQueue::SegmentQueue(std::size_t capacity_bytes, Overflow overflow, AgentStatus& status, double linger)
    : capacity_(capacity_bytes), overflow_(overflow), status_(status), linger_(linger) {}

std::size_t SegmentQueue::waiting() const {
    const std::lock_guard lock(mutex_);
    return queue_.size() + (busy_ ? 1 : 0);
}

std::unique_ptr<SegmentBuffer> SegmentQueue::blank(const std::shared_ptr<const wire::SegmentFormat>& form,
                                                   std::size_t length, std::size_t steps) {
    const std::size_t rows = SegmentBuffer::rows_for(steps, length);
    {
        const std::lock_guard lock(mutex_);
        Spare& spare = spare_[size_class(rows)];
        if (spare.form != form || spare.length != length) {
            spare.form = form;
            spare.length = length;
            spare.rows = rows;
            spare.bytes = 0;
        }
        while (!spare.list.empty()) {
            std::unique_ptr<SegmentBuffer> buffer = spare.list.pop_front();
            spare_bytes_ -= buffer->cost();
            spare.fewest = std::min(spare.fewest, spare.list.size());
            if (buffer->form() == form && buffer->length() == length && buffer->rows() == rows) {
                return buffer;
            }
        }
        spare.fewest = 0;
    }
    return std::make_unique<SegmentBuffer>(form, length, rows);
}

void SegmentQueue::replenish() {
    for (Spare& spare : spare_) {
        std::unique_lock lock(mutex_);
        const std::size_t wanted = spare.bytes == 0 ? 0 : std::min(most_reserved, most_reserved_bytes / spare.bytes);
        for (std::size_t free = spare.fewest; free < wanted; ++free) {
            const auto form = spare.form;
            const std::size_t length = spare.length;
            const std::size_t rows = spare.rows;
            lock.unlock();
            auto buffer = std::make_unique<SegmentBuffer>(form, length, rows);
            lock.lock();
            keep(std::move(buffer));
        }
        spare.fewest = spare.list.size();
    }
}

void SegmentQueue::give_back(std::unique_ptr<SegmentBuffer> buffer) {
    buffer->snapshot.reset();
    const std::lock_guard lock(mutex_);
    keep(std::move(buffer));
}

void SegmentQueue::post(std::unique_ptr<SegmentBuffer> buffer) {
    const std::size_t size = buffer->cost();
    bool wake = false;
    {
        std::unique_lock lock(mutex_);
        changed_.wait(lock,
                      [&] { return overflow_ != Overflow::Block || queue_.empty() || !is_full(size) || closed_; });
        if (closed_) {
            status_.drop("unsent_at_close");
            return;
        }
        while (!queue_.empty() && is_full(size)) {
            if (overflow_ == Overflow::DropNewest) {
                status_.drop("overflow_newest");
                keep(std::move(buffer));
                return;
            }
            std::unique_ptr<SegmentBuffer> oldest = queue_.pop_front();
            bytes_ -= oldest->cost();
            status_.drop("overflow_oldest");
            keep(std::move(oldest));
        }
        queue_.push_back(std::move(buffer));
        bytes_ += size;
        wake = queue_.size() == 1 || is_urgent();
    }
    if (wake) {
        changed_.notify_all();
    }
}

std::unique_ptr<SegmentBuffer> SegmentQueue::take() {
    std::unique_lock lock(mutex_);
    busy_ = false;
    if (queue_.empty()) {
        changed_.notify_all();
    }
    while (queue_.empty()) {
        if (closed_) {
            return nullptr;
        }
        changed_.wait(lock);
        if (!queue_.empty() && linger_ > 0.0) {
            changed_.wait_for(lock, length_of(linger_), [this] { return is_urgent(); });
        }
    }
    busy_ = true;
    return pop();
}

std::unique_ptr<SegmentBuffer> SegmentQueue::take_another() {
    const std::lock_guard lock(mutex_);
    return queue_.empty() ? nullptr : pop();
}

std::unique_ptr<SegmentBuffer> SegmentQueue::pop() {
    std::unique_ptr<SegmentBuffer> buffer = queue_.pop_front();
    bytes_ -= buffer->cost();
    if (overflow_ == Overflow::Block) {
        changed_.notify_all();
    }
    return buffer;
}

bool SegmentQueue::drained(double timeout) {
    std::unique_lock lock(mutex_);
    ++hurried_;
    changed_.notify_all();
    const bool done = changed_.wait_for(lock, length_of(timeout), [this] { return queue_.empty() && !busy_; });
    --hurried_;
    return done;
}

void SegmentQueue::close() {
    {
        const std::lock_guard lock(mutex_);
        closed_ = true;
    }
    changed_.notify_all();
}

void SegmentQueue::keep(std::unique_ptr<SegmentBuffer> buffer) {
    Spare& spare = spare_[size_class(buffer->rows())];
    const bool is_current = buffer->form() == spare.form && buffer->length() == spare.length;
    // As many as could wait at once; the first is always kept.
    if (is_current && (spare.list.empty() || spare_bytes_ + buffer->cost() <= capacity_)) {
        spare.bytes = buffer->cost();
        spare_bytes_ += spare.bytes;
        spare.list.push_front(std::move(buffer));
    }
}

}  // namespace rl4sys::client
