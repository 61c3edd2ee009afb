/// The wire format of one learner's segments: their arrays, and how many choices an action has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "rl4sys/arrays.hpp"
#include "rl4sys/policy_spec.hpp"

namespace rl4sys::wire {

/// What client and server agree on at Join. A buffer is reused only for the same format object.
struct SegmentFormat {
    std::vector<ArraySpec> observation;
    ArraySpec action;
    std::vector<ArraySpec> extras;
    std::vector<ArraySpec> carry;
    std::vector<std::uint64_t> choices;  ///< Choices of each part of an action; empty for continuous actions.

    bool operator==(const SegmentFormat& other) const {
        return observation == other.observation && action == other.action && extras == other.extras &&
               carry == other.carry && choices == other.choices;
    }
};

/// The format of the segments that this policy produces.
SegmentFormat format_of(const PolicySpec& spec);

/// Choices of each part of an action; empty for continuous actions.
std::vector<std::uint64_t> choices_of(const ActionSpec& action);

/// Bytes of one part of an action on the wire: 1, 2, 4 or 8, the fewest that hold every choice.
std::size_t choice_bytes(const std::vector<std::uint64_t>& choices);

}  // namespace rl4sys::wire
