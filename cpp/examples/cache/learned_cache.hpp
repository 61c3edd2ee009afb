/// @file
/// A cache that learns what to evict.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "cache.hpp"
#include "lru_guard.hpp"
#include "page_history.hpp"
#include "page_list.hpp"
#include "victim_chooser.hpp"

namespace examples {

/// On a miss in a full cache, a chooser sees a few randomly sampled pages and chooses the victim. It regrets a victim
/// that is requested again before twice as many pages were evicted as the cache holds. All of this takes constant time.
class LearnedCache : public Cache {
public:
    /// @param chooser must outlive the cache.
    LearnedCache(std::size_t page_count, std::size_t capacity, VictimChooser& chooser, std::uint64_t seed);

    bool request(Page page) override;

    const LruGuard& guard() const noexcept { return guard_; }
    std::uint64_t evictions() const noexcept { return evictions_; }
    /// How many of them LRU decided because of the guard.
    std::uint64_t guarded_evictions() const noexcept { return guarded_evictions_; }

private:
    struct Eviction {
        /// -1 for pages whose return is of no interest.
        std::int64_t decision = -1;
        /// How many evictions there were before.
        std::uint64_t number = 0;
    };

    /// Make room; returns the free place.
    std::size_t evict();
    std::size_t choose();
    /// If a page returns too soon, its decision is regretted.
    void returned(Page page);

    VictimChooser& chooser_;
    std::size_t capacity_;
    std::mt19937_64 random_;
    PageHistory history_;
    LruGuard guard_;
    /// The pages in the cache, in any order, and by recency.
    std::vector<Page> pages_;
    PageList recency_;
    std::vector<std::size_t> place_of_;
    std::vector<Eviction> eviction_of_;
    std::uint64_t now_ = 0;
    std::uint64_t evictions_ = 0;
    std::uint64_t guarded_evictions_ = 0;
};

}  // namespace examples
