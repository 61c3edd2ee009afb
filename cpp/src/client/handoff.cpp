#include "client/handoff.hpp"

#include <utility>

#include "client/clock.hpp"

namespace rl4sys::client {

Handoff::Handoff(std::size_t capacity_bytes, Overflow overflow, Tally& tally, double linger)
    : capacity_(capacity_bytes), overflow_(overflow), tally_(tally), linger_(linger) {}

std::size_t Handoff::waiting() const {
    const std::lock_guard lock(mutex_);
    return queue_.size() + (busy_ ? 1 : 0);
}

std::unique_ptr<Draft> Handoff::blank(const std::shared_ptr<const wire::SegmentFormat>& form, std::size_t length) {
    {
        const std::lock_guard lock(mutex_);
        while (!spare_.empty()) {
            std::unique_ptr<Draft> draft = spare_.pop_front();
            spare_bytes_ -= draft->cost();
            if (draft->form() == form && draft->length() == length) {
                return draft;
            }
        }
    }
    return std::make_unique<Draft>(form, length);
}

void Handoff::give_back(std::unique_ptr<Draft> draft) {
    draft->snapshot.reset();
    const std::lock_guard lock(mutex_);
    keep(std::move(draft));
}

void Handoff::post(std::unique_ptr<Draft> draft) {
    const std::size_t size = draft->cost();
    bool wake = false;
    {
        std::unique_lock lock(mutex_);
        changed_.wait(lock,
                      [&] { return overflow_ != Overflow::Block || queue_.empty() || !is_full(size) || closed_; });
        if (closed_) {
            tally_.drop("unsent_at_close");
            return;
        }
        while (!queue_.empty() && is_full(size)) {
            if (overflow_ == Overflow::DropNewest) {
                tally_.drop("overflow_newest");
                keep(std::move(draft));
                return;
            }
            std::unique_ptr<Draft> oldest = queue_.pop_front();
            bytes_ -= oldest->cost();
            tally_.drop("overflow_oldest");
            keep(std::move(oldest));
        }
        queue_.push_back(std::move(draft));
        bytes_ += size;
        wake = queue_.size() == 1 || is_urgent();
    }
    if (wake) {
        changed_.notify_all();
    }
}

std::unique_ptr<Draft> Handoff::take() {
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
    std::unique_ptr<Draft> draft = queue_.pop_front();
    bytes_ -= draft->cost();
    if (overflow_ == Overflow::Block) {
        changed_.notify_all();
    }
    return draft;
}

bool Handoff::drained(double timeout) {
    std::unique_lock lock(mutex_);
    ++hurried_;
    changed_.notify_all();
    const bool done = changed_.wait_for(lock, length_of(timeout), [this] { return queue_.empty() && !busy_; });
    --hurried_;
    return done;
}

void Handoff::close() {
    {
        const std::lock_guard lock(mutex_);
        closed_ = true;
    }
    changed_.notify_all();
}

void Handoff::keep(std::unique_ptr<Draft> draft) {
    // As many as could wait at once; the first is always worth keeping.
    if (spare_.empty() || spare_bytes_ + draft->cost() <= capacity_) {
        spare_bytes_ += draft->cost();
        spare_.push_front(std::move(draft));
    }
}

}  // namespace rl4sys::client
