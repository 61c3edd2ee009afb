/// Packs of short segments: encoded together, and split for servers that accept each alone only.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "wire/segments.hpp"

namespace rl4sys::wire {

/// Whether one pack can hold both: the same agent, version and decider, and times in both or in neither.
bool can_share_pack(const SegmentView& one, const SegmentView& other);

/// The bytes for PushedSegment of several segments, the same as in Python. @throws SegmentRefused as `encode_segment`
/// does, if one of them cannot be learned from.
std::string encode_pack(const SegmentFormat& form, const std::vector<SegmentView>& segments);

/// The bytes of each segment of a pack, as if it had been sent alone. It needs no schema. @throws ContractViolation
std::vector<std::string> split_pack(std::string_view pack, std::uint32_t count);

}  // namespace rl4sys::wire
