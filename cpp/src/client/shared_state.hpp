/// What all episodes of one agent share.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "client/agent_status.hpp"
#include "client/clock.hpp"
#include "client/decision_times.hpp"
#include "client/fallback.hpp"
#include "client/governor.hpp"
#include "client/segment_queue.hpp"
#include "client/server_policy.hpp"
#include "client/thinning.hpp"
#include "rl4sys/action_structure.hpp"
#include "rl4sys/bad_input.hpp"
#include "rl4sys/reward_window.hpp"

namespace rl4sys::client {

/// What all episodes of one agent share.
struct SharedState {
    const Governor& governor;
    SegmentQueue& queue;
    AgentStatus& status;
    Thinning& thinning;
    DecisionTimes& times;
    ServerPolicy& server_policy;  ///< Decides with `decide: server`.
    std::size_t longest = 0;      ///< Most steps of one segment.
    RewardWindow reward_window;
    Clock clock;  ///< In seconds, for rewards that are accepted by time.
    std::optional<FallbackDecider> fallback;
    BadInputChoice on_bad_input = BadInputChoice::Raise;
    std::shared_ptr<const ActionStructure> structure;  ///< The parts of actions; null if they have none.
    std::string client;
    std::uint64_t seed = 0;
    /// The first step for which a server draws random numbers: it has one seed, so every start begins at another step.
    std::uint64_t first_step = 0;
    std::uint64_t forks = 0;
};

}  // namespace rl4sys::client
