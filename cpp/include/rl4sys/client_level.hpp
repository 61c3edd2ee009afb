/// @file
/// How much of a client works: the levels that a profile alternates, to tell what each part costs.
#pragma once

#include <array>
#include <cstdint>

namespace rl4sys {

/// Each level does what those before it do, and more.
enum class ClientLevel : std::uint8_t {
    /// The fallback decides; nothing else happens.
    Off,
    /// The policy decides; nothing is recorded.
    Decide,
    /// Decisions are recorded and encoded, and then dropped.
    Record,
    /// Experience is sent and new versions are taken: the normal state.
    Full,
};

inline constexpr std::array client_levels{ClientLevel::Off, ClientLevel::Decide, ClientLevel::Record,
                                          ClientLevel::Full};

/// Its name in reports.
constexpr const char* name_of(ClientLevel level) {
    return level == ClientLevel::Off      ? "off"
           : level == ClientLevel::Decide ? "decide"
           : level == ClientLevel::Record ? "record"
                                          : "full";
}

}  // namespace rl4sys
