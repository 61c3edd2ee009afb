/// @file
/// What the learned cache remembers of each page, and what the policy observes of it.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "trace.hpp"

namespace examples {

/// Numbers that the policy observes of one page.
constexpr std::size_t feature_count = 6;
using PageFeatures = std::array<float, feature_count>;

/// Uses of every page in the cache and of pages that left it lately. Time is counted in requests.
class PageHistory {
public:
    PageHistory(std::size_t page_count, std::size_t capacity)
        : uses_(page_count), per_capacity_(1.0F / static_cast<float>(capacity)), memory_(memory_factor * capacity) {}

    /// Note a request of a page in the cache.
    void hit(Page page, std::uint64_t now) {
        Uses& uses = uses_[page];
        uses.gap = now - uses.last;
        uses.last = now;
        ++uses.stay;
        ++uses.total;
    }

    /// Note that a page enters the cache. Uses before are forgotten if the last one was too long ago.
    void insert(Page page, std::uint64_t now) {
        Uses& uses = uses_[page];
        const bool is_known = uses.total > 0 && now - uses.last <= memory_;
        uses = {now, now, is_known ? now - uses.last : memory_, 0, is_known ? uses.total + 1 : 1};
    }

    /// Recency, age, hits during this stay, gap between the last two uses, uses including earlier stays, and recency
    /// relative to that gap. Times are relative to the capacity; all are logarithms, around 0 and seldom beyond 3.
    PageFeatures features(Page page, std::uint64_t now) const {
        const Uses& uses = uses_[page];
        const float recency = relative(now - uses.last);
        const float gap = relative(uses.gap);
        return {recency, relative(now - uses.inserted), counted(uses.stay), gap, counted(uses.total), recency - gap};
    }

private:
    struct Uses {
        std::uint64_t last = 0;
        std::uint64_t inserted = 0;
        std::uint64_t gap = 0;
        /// Hits since it was inserted, and all uses that are remembered.
        std::uint32_t stay = 0;
        std::uint32_t total = 0;
    };

    /// How many times the capacity a page is remembered for.
    static constexpr std::uint64_t memory_factor = 16;

    float relative(std::uint64_t requests) const {
        return 0.25F * std::log2((1.0F + static_cast<float>(requests)) * per_capacity_);
    }
    static float counted(std::uint32_t uses) { return 0.5F * std::log2(1.0F + static_cast<float>(uses)) - 1.0F; }

    std::vector<Uses> uses_;
    float per_capacity_;
    std::uint64_t memory_;
};

}  // namespace examples
