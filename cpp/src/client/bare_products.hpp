/// The least that a decision can cost: the matrix products of its policy, and nothing else.
#pragma once

#include <cstdint>
#include <optional>

#include "client/snapshot.hpp"

namespace rl4sys::client {

/// The nanoseconds of the products of a row with all matrices; nothing for a policy on the server.
std::optional<std::uint64_t> bare_products(const SharedSnapshot& snapshot);

}  // namespace rl4sys::client
