/// What the background threads tell the decision path: atomics, which a decision reads without waiting.
#pragma once

#include <atomic>

namespace rl4sys::client {

/// What the server asks of this client's decisions and recordings.
struct ActingRules {
    /// The client acts with a policy of another lineage than the server's: nothing is recorded.
    std::atomic<bool> keeps_other_lineage = false;
    /// Whether decisions of the fallback are of use to the learner.
    std::atomic<bool> accepts_fallback = false;
    /// The share of episodes to record.
    std::atomic<double> record_share = 1.0;
};

}  // namespace rl4sys::client
