#include "wire/compression.hpp"

#include <utility>

#include "weights/packing.hpp"

namespace rl4sys::wire {
namespace {

// Bytes of a segment below which it is not worth trying.
constexpr std::size_t least_bytes = 128;

}  // namespace

void compress_push(PushRequest& request) {
    for (PushedSegment& pushed : request.segments) {
        if (pushed.segment.size() < least_bytes) continue;
        std::string frame = compress(pushed.segment);
        if (frame.empty()) continue;
        pushed.uncompressed_bytes = static_cast<std::uint32_t>(pushed.segment.size());
        pushed.segment = std::move(frame);
    }
}

}  // namespace rl4sys::wire
