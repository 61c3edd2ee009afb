/// @file
/// Lets a replay wait for its learner, so that what is learned does not depend on how busy the machine is.
#pragma once

#include <chrono>
#include <cstdint>
#include <thread>

#include "rl4sys/agent.hpp"

namespace examples {

class LearnerPace {
public:
    /// @param most evictions before a new version is waited for; 0 to wait never, as a live system would.
    LearnerPace(const rl4sys::Agent& agent, std::uint64_t most) : agent_(agent), most_(most) {}

    /// Wait after so many evictions in all, if it is time for another version, but no longer than a second: a learner
    /// that has no use for more experience publishes none.
    void wait(std::uint64_t evictions) {
        if (most_ == 0 || evictions - checked_ < most_) return;
        const auto latest = std::chrono::steady_clock::now() + std::chrono::seconds(1);
        while (agent_.health().version.value_or(0) == version_ && std::chrono::steady_clock::now() < latest) {
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        }
        version_ = agent_.health().version.value_or(0);
        checked_ = evictions;
    }

private:
    const rl4sys::Agent& agent_;
    std::uint64_t most_;
    std::uint64_t checked_ = 0;
    std::uint64_t version_ = 0;
};

}  // namespace examples
