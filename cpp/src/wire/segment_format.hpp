/// How the segments of one learner travel: their arrays, and how many choices an action has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "rl4sys/arrays.hpp"
#include "rl4sys/policy_spec.hpp"

namespace rl4sys::wire {

/// What client and server agree on at Join. Two drafts can be used in turn only if their format is one object.
struct SegmentFormat {
    std::vector<ArraySpec> observation;
    ArraySpec action;
    std::vector<ArraySpec> extras;
    std::vector<ArraySpec> carry;
    std::vector<std::uint64_t> choices;  ///< Of each part of an action; empty where actions are real numbers.

    bool operator==(const SegmentFormat& other) const {
        return observation == other.observation && action == other.action && extras == other.extras &&
               carry == other.carry && choices == other.choices;
    }
};

/// The format of the segments that this policy produces.
SegmentFormat format_of(const PolicySpec& spec);

/// Bytes in which one part of an action travels: 1, 2, 4 or 8, the least that holds every choice.
std::size_t choice_bytes(const std::vector<std::uint64_t>& choices);

}  // namespace rl4sys::wire
