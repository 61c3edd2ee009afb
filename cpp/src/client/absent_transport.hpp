/// The transport of a client that has no connection and never gets one.
#pragma once

#include <memory>
#include <string>

#include "wire/calls.hpp"

namespace rl4sys::client {

/// Every call fails as `Unavailable` with this problem, so that a cached policy or the fallback decides.
std::shared_ptr<wire::Transport> absent_transport(std::string problem);

}  // namespace rl4sys::client
