/// Compressed pushes: segments as zstd frames, where both sides know them and the frames are smaller.
#pragma once

#include "wire/calls.hpp"

namespace rl4sys::wire {

/// Replace the segments of a push by frames where that is smaller.
void compress_push(PushRequest& request);

}  // namespace rl4sys::wire
