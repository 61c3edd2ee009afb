/// A histogram of how long decisions take, from a sample of them.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

namespace rl4sys::client {

/// One decision of so many is timed, so that the others pay nothing.
inline constexpr std::int64_t timed_decisions = 64;

/// Bucket i counts decisions of less than 2^i microseconds, and of no less than 2^(i-1).
///
/// The last bucket has all longer ones.
class DecisionTimes {
public:
    static constexpr std::size_t buckets = 24;

    /// Count a decision.
    void add(std::uint64_t nanoseconds) noexcept {
        constexpr std::uint64_t per_microsecond = 1000;
        std::size_t bucket = 0;
        for (std::uint64_t left = nanoseconds / per_microsecond; left > 0; left >>= 1) {
            ++bucket;
        }
        counts_[std::min(buckets - 1, bucket)].fetch_add(1, std::memory_order_relaxed);
    }
    std::vector<std::uint64_t> counts() const { return {counts_.begin(), counts_.end()}; }

private:
    std::array<std::atomic<std::uint64_t>, buckets> counts_{};
};

}  // namespace rl4sys::client
