#include "wire/segment_format.hpp"

#include <algorithm>

namespace rl4sys::wire {

std::vector<std::uint64_t> choices_of(const ActionSpec& action) {
    if (const auto* discrete = std::get_if<DiscreteAction>(&action)) {
        return {static_cast<std::uint64_t>(discrete->n)};
    }
    if (const auto* several = std::get_if<MultiDiscreteAction>(&action)) {
        return {several->sizes.begin(), several->sizes.end()};
    }
    if (const auto* mixed = std::get_if<MixedAction>(&action)) {
        return {mixed->sizes.begin(), mixed->sizes.end()};
    }
    return {};
}

SegmentFormat format_of(const PolicySpec& spec) {
    return {spec.program.inputs, action_array(spec.action), spec.noted(), spec.carry_arrays(), choices_of(spec.action)};
}

std::size_t choice_bytes(const std::vector<std::uint64_t>& choices) {
    const std::uint64_t largest = choices.empty() ? 0 : *std::max_element(choices.begin(), choices.end()) - 1;
    if (largest <= 0xFF) {
        return 1;
    }
    return largest <= 0xFFFF ? 2 : largest <= 0xFFFFFFFF ? 4 : 8;
}

}  // namespace rl4sys::wire
