/// A histogram of how long decisions take, from a sample of them; of all of them while a profile is made.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <map>
#include <vector>

namespace rl4sys::client {

/// One decision of so many is timed, so that the others pay nothing.
inline constexpr std::int64_t timed_decisions = 64;

/// The decisions of a part of a profile.
struct ProfiledTimes {
    std::map<std::uint32_t, std::uint64_t> counts;  ///< By the whole part of 32 log2(nanoseconds).
    std::uint64_t longest = 0;                      ///< Nanoseconds.
};

/// Bucket i counts decisions of less than 2^i microseconds, and of no less than 2^(i-1).
///
/// The last bucket has all longer ones.
class DecisionTimes {
public:
    static constexpr std::size_t buckets = 24;

    /// Whether to time a decision, by how many there were before it in its episode.
    bool wants(std::int64_t before) const noexcept {
        return before % timed_decisions == 0 || is_profiled_.load(std::memory_order_relaxed);
    }

    /// Count a decision that was timed.
    void add(std::int64_t before, std::uint64_t nanoseconds) noexcept {
        if (before % timed_decisions == 0) {
            count(nanoseconds);
        }
        if (is_profiled_.load(std::memory_order_relaxed)) {
            profile(nanoseconds);
        }
    }
    /// Count the mean of several decisions that were taken together.
    void add_batch(std::uint64_t nanoseconds, std::uint64_t decisions) noexcept {
        count(nanoseconds);
        if (is_profiled_.load(std::memory_order_relaxed)) {
            profile(nanoseconds, decisions);
        }
    }
    std::vector<std::uint64_t> counts() const { return {counts_.begin(), counts_.end()}; }

    /// Time every decision from now on.
    void start_profile() noexcept { is_profiled_ = true; }
    void end_profile() noexcept { is_profiled_ = false; }
    bool is_profiled() const noexcept { return is_profiled_; }
    /// The decisions since the last call.
    ProfiledTimes take_profile() {
        ProfiledTimes taken;
        taken.longest = longest_.exchange(0);
        for (std::uint32_t bucket = 0; bucket < profile_buckets; ++bucket) {
            if (const std::uint64_t count = profile_[bucket].exchange(0); count > 0) {
                taken.counts[bucket] = count;
            }
        }
        return taken;
    }

private:
    static constexpr std::uint32_t profile_buckets = 1024;

    void count(std::uint64_t nanoseconds) noexcept {
        constexpr std::uint64_t per_microsecond = 1000;
        std::size_t bucket = 0;
        for (std::uint64_t left = nanoseconds / per_microsecond; left > 0; left >>= 1) {
            ++bucket;
        }
        counts_[std::min(buckets - 1, bucket)].fetch_add(1, std::memory_order_relaxed);
    }

    void profile(std::uint64_t nanoseconds, std::uint64_t decisions = 1) noexcept {
        constexpr double per_doubling = 32.0;
        const double place = per_doubling * std::log2(static_cast<double>(std::max<std::uint64_t>(1, nanoseconds)));
        const auto bucket = std::min(profile_buckets - 1, static_cast<std::uint32_t>(place));
        profile_[bucket].fetch_add(decisions, std::memory_order_relaxed);
        std::uint64_t longest = longest_.load(std::memory_order_relaxed);
        while (nanoseconds > longest && !longest_.compare_exchange_weak(longest, nanoseconds)) {
        }
    }

    std::array<std::atomic<std::uint64_t>, buckets> counts_{};
    std::atomic<bool> is_profiled_ = false;
    std::atomic<std::uint64_t> longest_ = 0;
    std::array<std::atomic<std::uint64_t>, profile_buckets> profile_{};
};

}  // namespace rl4sys::client
