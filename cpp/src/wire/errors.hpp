/// Errors of messages.
#pragma once

#include <stdexcept>

namespace rl4sys::wire {

/// A message breaks the wire contract. Nothing of it was used.
struct ContractViolation : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// A segment that can never be stored: sending it again is useless.
struct SegmentRefused : std::runtime_error {
    using std::runtime_error::runtime_error;
};

}  // namespace rl4sys::wire
