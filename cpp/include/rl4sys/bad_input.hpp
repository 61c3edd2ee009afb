/// @file
/// What happens when an observation, or the policy's decision for it, cannot be used.
#pragma once

#include <cstdint>

namespace rl4sys {

/// The setting `on_bad_input`.
enum class BadInputChoice : std::uint8_t {
    /// `act` returns no action, with `Problem::BadObservation` or `Problem::NothingAllowed`; nothing is decided.
    Raise,
    /// The fallback decides.
    FallBack,
    /// The last action is taken again; before the first one, the fallback decides.
    Hold,
};

}  // namespace rl4sys
