/// Patches from the parts in which they are streamed.
#pragma once

#include <functional>
#include <optional>

#include "wire/calls.hpp"

namespace rl4sys::wire {

/// Gives the next part, or nothing at the end.
using NextChunk = std::function<std::optional<PatchChunk>()>;

/// The patch in a stream of parts. @throws ContractViolation
///
/// `size` is how many floats the receiver's own layout has: it bounds what is collected. Whether the payload is what
/// was published is seen when `apply_patch` compares the SHA-256 of the result.
Patch decode_patch(const NextChunk& next, std::size_t size);

}  // namespace rl4sys::wire
