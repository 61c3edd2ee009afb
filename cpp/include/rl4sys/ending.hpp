/// @file
/// How episodes end.
#pragma once

#include <cstdint>

namespace rl4sys {

/// How a segment ends. Only `Terminated` says that there is no future value.
enum class Ending : std::uint8_t {
    /// The episode continues in a later segment.
    Continues = 0,
    /// The episode ended; there is no future value.
    Terminated = 1,
    /// The episode was cut short; its last observation still has a value.
    Truncated = 2,
};

}  // namespace rl4sys
