/// The columns of a segment as they are sent, alone or in a pack.
#pragma once

#include <rl4sys/v1/experience.pb.h>

#include <string>
#include <string_view>

#include "wire/segments.hpp"

namespace rl4sys::wire {

v1::Ending ending_of(Ending ending);

/// @throws SegmentRefused unless a segment has the agreed arrays, all of them finite.
void require_columns(const SegmentFormat& form, const SegmentView& segment);

/// Actions as they are sent: choices in the smallest type that holds them all. @throws SegmentRefused if one is none.
std::string sent_action(const SegmentFormat& form, std::string_view action);

}  // namespace rl4sys::wire
