/// @file
/// LFU with ageing: evicts the page that was used least often, and forgets old uses.
#pragma once

#include <cstdint>
#include <set>
#include <tuple>
#include <vector>

#include "cache.hpp"

namespace examples {

/// LFU with dynamic ageing (Arlitt et al., 2000): the priority of a page is its uses since it was inserted plus the
/// priority of the latest victim at its last use. Formerly popular pages are so overtaken by new ones.
class LfuCache : public Cache {
public:
    LfuCache(std::size_t page_count, std::size_t capacity) : entries_(page_count), capacity_(capacity) {}

    bool request(Page page) override {
        Entry& entry = entries_[page];
        const bool hit = entry.uses > 0;
        if (hit) {
            order_.erase({entry.priority, entry.used, page});
        } else if (order_.size() == capacity_) {
            evict();
        }
        entry = {entry.uses + 1, age_ + entry.uses + 1, ++now_};
        order_.insert({entry.priority, entry.used, page});
        return hit;
    }

private:
    struct Entry {
        /// 0 for pages outside the cache.
        std::uint64_t uses = 0;
        std::uint64_t priority = 0;
        std::uint64_t used = 0;
    };

    void evict() {
        const auto least = order_.begin();
        age_ = std::get<0>(*least);
        entries_[std::get<2>(*least)].uses = 0;
        order_.erase(least);
    }

    std::vector<Entry> entries_;
    std::size_t capacity_;
    /// Priority, last use and page; among equals the least recent comes first.
    std::set<std::tuple<std::uint64_t, std::uint64_t, Page>> order_;
    std::uint64_t age_ = 0;
    std::uint64_t now_ = 0;
};

}  // namespace examples
