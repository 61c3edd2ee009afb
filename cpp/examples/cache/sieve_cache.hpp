/// @file
/// SIEVE: a queue with a hand that spares pages which were used again.
#pragma once

#include <cstdint>
#include <vector>

#include "cache.hpp"
#include "page_list.hpp"

namespace examples {

/// SIEVE (Zhang et al., NSDI 2024): a hit only marks the page. The hand moves from the oldest page to the newest,
/// removes marks, and evicts the first page without one.
class SieveCache : public Cache {
public:
    SieveCache(std::size_t page_count, std::size_t capacity)
        : pages_(page_count), visited_(page_count), hand_(pages_.none()), capacity_(capacity) {}

    bool request(Page page) override {
        if (pages_.has(page)) {
            visited_[page] = 1;
            return true;
        }
        if (pages_.size() == capacity_) evict();
        pages_.push_newest(page);
        visited_[page] = 0;
        return false;
    }

private:
    void evict() {
        Page page = hand_ == pages_.none() ? pages_.oldest() : hand_;
        while (visited_[page] != 0) {
            visited_[page] = 0;
            page = pages_.newer_than(page);
            if (page == pages_.none()) page = pages_.oldest();
        }
        hand_ = pages_.newer_than(page);
        pages_.remove(page);
    }

    PageList pages_;
    std::vector<std::uint8_t> visited_;
    Page hand_;
    std::size_t capacity_;
};

}  // namespace examples
