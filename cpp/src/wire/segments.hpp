/// Encodes segments into the bytes in which they are stored and sent.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rl4sys/ending.hpp"
#include "wire/errors.hpp"
#include "wire/segment_format.hpp"

namespace rl4sys::wire {

/// A view of a segment: consecutive steps of one episode.
struct SegmentView {
    std::string_view agent;
    std::uint64_t lane = 0;
    std::uint64_t episode = 0;
    std::uint64_t start = 0;
    std::uint64_t policy_version = 0;
    Ending ending = Ending::Continues;
    bool decided_by_fallback = false;   ///< Whether the system's own fallback chose the actions.
    bool decided_by_incumbent = false;  ///< Whether the system itself did, without asking the policy.
    std::uint32_t steps = 0;
    std::vector<std::string_view> observation;  ///< The bytes of steps + 1 rows of each array, in the format's order.
    std::string_view action;                    ///< `steps` rows, as the policy chose: int64 or float32.
    std::string_view reward;
    std::vector<std::string_view> extras;
    std::string_view elapsed;             ///< Seconds after each step, float32; empty where no times were given.
    std::vector<std::string_view> carry;  ///< One row each: the memory before the first step.
};

/// The bytes for PushedSegment. @throws SegmentRefused if the segment lacks the agreed arrays, if an
/// action is not one of the choices, or if a number is NaN or infinite.
std::string encode_segment(const SegmentFormat& form, const SegmentView& segment);

}  // namespace rl4sys::wire
