/// @file
/// S3-FIFO: three queues, of which a small one filters pages that are requested only once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "cache.hpp"
#include "page_list.hpp"

namespace examples {

/// S3-FIFO (Yang et al., SOSP 2023, algorithm 1), with a tenth of the capacity for new pages and a memory of as many
/// evicted pages as the main queue can hold.
class S3FifoCache : public Cache {
public:
    S3FifoCache(std::size_t page_count, std::size_t capacity)
        : small_(page_count),
          main_(page_count),
          evicted_(page_count),
          uses_(page_count),
          capacity_(capacity),
          small_capacity_(std::max<std::size_t>(1, capacity / 10)) {}

    bool request(Page page) override {
        if (small_.has(page) || main_.has(page)) {
            uses_[page] = static_cast<std::uint8_t>(std::min(uses_[page] + 1, most_uses));
            return true;
        }
        while (small_.size() + main_.size() >= capacity_) evict();
        if (evicted_.has(page)) {
            evicted_.remove(page);
            main_.push_newest(page);
        } else {
            small_.push_newest(page);
        }
        uses_[page] = 0;
        return false;
    }

private:
    static constexpr int most_uses = 3;

    void evict() {
        if (small_.size() >= small_capacity_ || main_.size() == 0) {
            evict_small();
        } else {
            evict_main();
        }
    }

    /// Pages that were used at least twice since they came move to the main queue, where they count from 0, and the
    /// first other one leaves.
    void evict_small() {
        while (small_.size() > 0) {
            const Page page = small_.pop_oldest();
            if (uses_[page] > 1) {
                uses_[page] = 0;
                main_.push_newest(page);
                if (main_.size() > capacity_ - small_capacity_) evict_main();
            } else {
                remember(page);
                return;
            }
        }
    }

    /// Pages that were used again are spared, at the price of one use.
    void evict_main() {
        while (true) {
            const Page page = main_.pop_oldest();
            if (uses_[page] == 0) return;
            --uses_[page];
            main_.push_newest(page);
        }
    }

    void remember(Page page) {
        if (evicted_.size() >= capacity_ - small_capacity_) evicted_.pop_oldest();
        evicted_.push_newest(page);
    }

    PageList small_;
    PageList main_;
    PageList evicted_;
    /// Uses of each page after the one that inserted it, up to three.
    std::vector<std::uint8_t> uses_;
    std::size_t capacity_;
    std::size_t small_capacity_;
};

}  // namespace examples
