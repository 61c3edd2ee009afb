/// Patches from the chunks in which they are streamed.
#pragma once

#include <functional>
#include <optional>

#include "wire/calls.hpp"

namespace rl4sys::wire {

/// Returns the next chunk, or nothing at the end.
using NextChunk = std::function<std::optional<PatchChunk>()>;

/// The patch in a stream of chunks. @throws ContractViolation
///
/// `size` is the number of floats in the receiver's layout: it bounds the memory. Whether the payload is the
/// published one is checked when `apply_patch` compares the SHA-256 of the result.
Patch decode_patch(const NextChunk& next, std::size_t size);

}  // namespace rl4sys::wire
