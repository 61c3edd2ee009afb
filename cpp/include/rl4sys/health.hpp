/// @file
/// What an operator wants to know about an agent.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace rl4sys {

/// The state of an agent at one moment.
struct Health {
    /// Whether the last call to the server succeeded.
    bool connected = false;
    /// Who learns; empty before the first policy.
    std::string learner;
    /// Of the weights that decide now; absent before the first policy.
    std::optional<std::uint64_t> version;
    /// Seconds since that version arrived.
    std::optional<double> age;
    /// Taken by the policy since the start.
    std::uint64_t decisions = 0;
    /// Taken by the fallback, and not recorded.
    std::uint64_t fallback_decisions = 0;
    std::uint64_t open_episodes = 0;
    /// Segments that wait to be sent or acknowledged.
    std::uint64_t backlog = 0;
    std::uint64_t backlog_bytes = 0;
    /// Segments that the server has for ever.
    std::uint64_t acknowledged = 0;
    /// Segments that will never be sent, by reason; under `no_final_observation` and `schema_changed`, decisions.
    std::map<std::string, std::uint64_t> drops;
    /// Rewards for decisions that were sealed already.
    std::uint64_t late_rewards = 0;
    /// Updates that did not check out and were pulled in full.
    std::uint64_t damaged_patches = 0;
    /// Empty if there was none.
    std::string last_error;
    /// Why nothing is sent or received at present, though the server is there or a thread died; empty while it is.
    std::string stopped;
};

}  // namespace rl4sys
