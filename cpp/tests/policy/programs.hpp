/// @file
/// Small policies for tests.
#pragma once

#include <cmath>
#include <memory>
#include <string>

#include "rl4sys/policy.hpp"

namespace rl4sys {

/// x [inputs] -> tanh layers -> logits [choices], as policies over vectors look.
inline PolicySpec dense_policy(std::uint32_t inputs, std::vector<std::uint32_t> widths, std::uint32_t choices) {
    PolicySpec spec;
    spec.action = DiscreteAction{choices, 0};
    spec.program.inputs = {{"x", ElementType::Float32, {inputs}}};
    std::string from = "x";
    std::uint32_t width = inputs;
    widths.push_back(choices);
    for (std::size_t layer = 0; layer < widths.size(); ++layer) {
        const std::string name = "layer" + std::to_string(layer);
        spec.program.tensors.push_back({name + ".weight", {width, widths[layer]}});
        spec.program.tensors.push_back({name + ".bias", {widths[layer]}});
        spec.program.ops.push_back({"linear", {name}, {from}, {name + ".weight", name + ".bias"}, {}});
        from = name;
        width = widths[layer];
        if (layer + 1 < widths.size()) {
            spec.program.ops.push_back({"tanh", {name + ".tanh"}, {from}, {}, {}});
            from = name + ".tanh";
        }
    }
    spec.head.kind = HeadKind::Categorical;
    spec.head.inputs = {from};
    return spec;
}

/// As many weights as a spec needs, small and different.
inline SharedWeights wavy_weights(const PolicySpec& spec) {
    auto weights = std::make_shared<Weights>(Layout(spec.program.tensors).size());
    for (std::size_t i = 0; i < weights->size(); ++i) (*weights)[i] = 0.2F * std::sin(static_cast<float>(i));
    return weights;
}

}  // namespace rl4sys
