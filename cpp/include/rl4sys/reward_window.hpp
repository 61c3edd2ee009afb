/// @file
/// How long a decision can receive rewards: for a number of later decisions, or for a time.
#pragma once

#include <cstddef>
#include <optional>

namespace rl4sys {

/// The setting `reward_window`, or `reward_timeout`. The latest decisions, and those of the latest seconds if these are
/// given.
struct RewardWindow {
    constexpr RewardWindow(std::size_t latest = 16) : decisions(latest) {}  // NOLINT(google-explicit-constructor)
    /// The decisions of the latest seconds, but no more than `most_decisions`, so that memory is bounded.
    static constexpr RewardWindow of_seconds(double time) {
        RewardWindow window(most_decisions);
        window.seconds = time;
        return window;
    }

    /// The same for the setting `reward_timeout`: segments that are older are cut, so that a task without end sends all
    /// the time.
    static constexpr RewardWindow of_timeout(double time) {
        RewardWindow window = of_seconds(time);
        window.cuts = true;
        return window;
    }

    static constexpr std::size_t most_decisions = std::size_t{1} << 16;

    std::size_t decisions;
    std::optional<double> seconds;
    bool cuts = false;  ///< Whether a segment that is older than `seconds` is cut.
};

}  // namespace rl4sys
