/// @file
/// Measures how long decisions take.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <vector>

namespace examples {

/// The durations of the newest decisions.
class Latencies {
public:
    Latencies() { times_.reserve(most); }

    /// Calls `decide`, records its duration, and returns its result.
    template <typename Decide>
    auto time(const Decide& decide) {
        const auto begin = std::chrono::steady_clock::now();
        auto decided = decide();
        const std::chrono::duration<double, std::micro> taken = std::chrono::steady_clock::now() - begin;
        if (times_.size() < most) {
            times_.push_back(taken.count());
        } else {
            times_[next_++ % most] = taken.count();
        }
        return decided;
    }

    /// A quantile in microseconds; 0 before the first decision.
    double quantile(double share) const {
        if (times_.empty()) {
            return 0.0;
        }
        std::vector<double> sorted = times_;
        std::sort(sorted.begin(), sorted.end());
        return sorted[static_cast<std::size_t>(share * static_cast<double>(sorted.size() - 1))];
    }

private:
    static constexpr std::size_t most = 1 << 16;

    std::vector<double> times_;
    std::size_t next_ = 0;
};

}  // namespace examples
