/// @file
/// A guard for the learned cache: if it is worse than LRU for a while, LRU decides.
#pragma once

#include <cstdint>

#include "lru_cache.hpp"

namespace examples {

/// Serves every request with a cache of its own as well, which holds page numbers only, and compares the hits.
class LruGuard {
public:
    /// Requests that are compared, and for which LRU decides afterwards.
    static constexpr std::uint64_t span = 50'000;
    /// Hits within that span by which LRU must be ahead: 2 points.
    static constexpr std::int64_t margin = span / 50;

    LruGuard(std::size_t page_count, std::size_t capacity) : lru_(page_count, capacity) {}

    /// Note a request and whether it was a hit of the guarded cache.
    void note(Page page, bool hit) {
        lead_ += static_cast<int>(lru_.request(page)) - static_cast<int>(hit);
        if (++requests_ < span) return;
        is_active_ = !is_active_ && lead_ >= margin;
        activations_ += is_active_ ? 1 : 0;
        lead_ = 0;
        requests_ = 0;
    }

    /// Whether LRU decides at present.
    bool is_active() const noexcept { return is_active_; }
    /// How often LRU took over.
    std::uint64_t activations() const noexcept { return activations_; }

private:
    LruCache lru_;
    std::int64_t lead_ = 0;
    std::uint64_t requests_ = 0;
    bool is_active_ = false;
    std::uint64_t activations_ = 0;
};

}  // namespace examples
