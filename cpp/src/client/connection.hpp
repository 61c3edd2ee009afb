/// Connecting over any transport; rl4sys/agent.hpp has the public `connect`, which uses gRPC.
#pragma once

#include <memory>

#include "client/agent.hpp"

namespace rl4sys::client {

/// `connect` over any transport, which the agent closes when it is closed.
Agent connect_over(const ClientSettings& settings, std::shared_ptr<wire::Transport> transport, Fallback fallback,
                   const Start& start);

}  // namespace rl4sys::client
