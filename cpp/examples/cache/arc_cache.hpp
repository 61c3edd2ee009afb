/// @file
/// ARC: balances pages used once against pages used more often.
#pragma once

#include <algorithm>

#include "cache.hpp"
#include "page_list.hpp"

namespace examples {

/// The adaptive replacement cache (Megiddo and Modha, FAST 2003, figure 4). `once_` and `often_` are T1 and T2 of the
/// paper, `evicted_once_` and `evicted_often_` B1 and B2: pages that it remembers without keeping them.
class ArcCache : public Cache {
public:
    ArcCache(std::size_t page_count, std::size_t capacity)
        : once_(page_count),
          often_(page_count),
          evicted_once_(page_count),
          evicted_often_(page_count),
          capacity_(capacity) {}

    bool request(Page page) override {
        if (often_.has(page)) {
            often_.make_newest(page);
            return true;
        }
        if (once_.has(page)) {
            once_.remove(page);
            often_.push_newest(page);
            return true;
        }
        if (evicted_once_.has(page)) {
            target_ = std::min(static_cast<double>(capacity_), target_ + step(evicted_often_, evicted_once_));
            replace(false);
            evicted_once_.remove(page);
            often_.push_newest(page);
        } else if (evicted_often_.has(page)) {
            target_ = std::max(0.0, target_ - step(evicted_once_, evicted_often_));
            replace(true);
            evicted_often_.remove(page);
            often_.push_newest(page);
        } else {
            make_room();
            once_.push_newest(page);
        }
        return false;
    }

private:
    /// How far a hit in the memory moves the target: further if the other memory is larger.
    static double step(const PageList& other, const PageList& hit) {
        return std::max(1.0, static_cast<double>(other.size()) / static_cast<double>(hit.size()));
    }

    /// Case IV of the paper: a page that it does not remember.
    void make_room() {
        const std::size_t recent = once_.size() + evicted_once_.size();
        const std::size_t all = recent + often_.size() + evicted_often_.size();
        if (recent == capacity_) {
            if (once_.size() == capacity_) {
                once_.pop_oldest();
                return;
            }
            evicted_once_.pop_oldest();
            replace(false);
        } else if (all >= capacity_) {
            if (all == 2 * capacity_) evicted_often_.pop_oldest();
            replace(false);
        }
    }

    /// Evict from `once_` if it is above its target size, else from `often_`.
    void replace(bool was_often) {
        if (once_.size() + often_.size() < capacity_) return;
        const auto size = static_cast<double>(once_.size());
        const bool is_above = size > target_ || (was_often && size == target_);
        if (once_.size() > 0 && is_above) {
            evicted_once_.push_newest(once_.pop_oldest());
        } else {
            evicted_often_.push_newest(often_.pop_oldest());
        }
    }

    PageList once_;
    PageList often_;
    PageList evicted_once_;
    PageList evicted_often_;
    std::size_t capacity_;
    /// The size that `once_` should have: p in the paper.
    double target_ = 0.0;
};

}  // namespace examples
