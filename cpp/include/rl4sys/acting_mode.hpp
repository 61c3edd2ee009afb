/// @file
/// How a client acts: explore, exploit or observe.
#pragma once

#include <cstdint>

namespace rl4sys {

/// How a client acts. The numbers are those of the protocol.
enum class ActingMode : std::uint8_t {
    /// With the explore policy; its experience is recorded and sent.
    Explore = 1,
    /// With the exploit policy; nothing is recorded.
    Exploit = 2,
    /// The fallback acts, and the exploit policy decides beside it, to be compared; nothing is recorded.
    Observe = 3,
};

/// Its name in the settings.
constexpr const char* name_of(ActingMode mode) {
    return mode == ActingMode::Explore ? "explore" : mode == ActingMode::Exploit ? "exploit" : "observe";
}

}  // namespace rl4sys
