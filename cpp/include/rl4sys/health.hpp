/// @file
/// The health of an agent, for operators.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace rl4sys {

/// The state of an agent at one point in time.
struct Health {
    /// Whether the last call to the server succeeded.
    bool connected = false;
    /// The learner that trains this policy; empty before the first policy.
    std::string learner;
    /// The version of the weights in use; absent before the first policy.
    std::optional<std::uint64_t> version;
    /// Identifies the history of the weights, within which versions only increase; empty if the server knows none.
    std::string lineage;
    /// Seconds since that version arrived.
    std::optional<double> age;
    /// Actions chosen by the policy since the start.
    std::uint64_t decisions = 0;
    /// Actions chosen by the fallback, which are not recorded.
    std::uint64_t fallback_decisions = 0;
    std::uint64_t open_episodes = 0;
    /// Segments waiting to be sent or acknowledged.
    std::uint64_t backlog = 0;
    std::uint64_t backlog_bytes = 0;
    /// Segments that the server has stored.
    std::uint64_t acknowledged = 0;
    /// Segments that will never be sent, by reason; under `no_final_observation` and `schema_changed`, decisions.
    std::map<std::string, std::uint64_t> drops;
    /// Rewards for decisions that were sealed already.
    std::uint64_t late_rewards = 0;
    /// Patches that failed verification; the weights were then pulled in full.
    std::uint64_t damaged_patches = 0;
    /// The error of the last failed call; empty if there was none.
    std::string last_error;
    /// Why nothing is sent or received at present: the server refuses this client, or a thread died; empty otherwise.
    std::string stopped;
};

}  // namespace rl4sys
