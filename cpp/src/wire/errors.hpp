/// What can be wrong with a message.
#pragma once

#include <stdexcept>

namespace rl4sys::wire {

/// A message, received or about to be sent, breaks the wire contract. Nothing of it was used.
struct ContractViolation : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// A segment that can never be stored, whoever sends it again.
struct SegmentRefused : std::runtime_error {
    using std::runtime_error::runtime_error;
};

}  // namespace rl4sys::wire
