/// @file
/// Where decisions are taken: in the client, or on the server.
#pragma once

#include <cstdint>

namespace rl4sys {

/// The setting `decide`.
enum class DecisionPlace : std::uint8_t {
    /// In the client, with a copy of the policy: no decision waits for the network.
    Local,
    /// On the server, which each decision asks with a deadline; for policies that clients cannot run.
    Server,
};

}  // namespace rl4sys
