/// @file
/// A policy for the learned cache that does not learn.
#pragma once

#include "cache/victim_chooser.hpp"
#include "rl4sys/policy_spec.hpp"

namespace examples {

/// Scores each candidate by the same sum over its features.
inline rl4sys::PolicySpec cache_policy() {
    constexpr auto most = static_cast<std::uint32_t>(candidate_count);
    constexpr auto features = static_cast<std::uint32_t>(feature_count);
    rl4sys::PolicySpec spec;
    spec.action = rl4sys::DiscreteAction{most, 0};
    spec.program.inputs = {{"candidates", rl4sys::ElementType::Float32, {most, features}},
                           {"candidate_count", rl4sys::ElementType::Float32, {1}}};
    const rl4sys::Settings without_activation{{"activation", std::string("none")}};
    spec.program.ops = {
        {"candidate_linear", {"scores"}, {"candidates", "candidate_count"}, {"w", "b"}, without_activation},
        {"flatten", {"flat"}, {"scores"}, {}, {}}};
    spec.program.tensors = {{"w", {features, 1}}, {"b", {1}}};
    spec.head.kind = rl4sys::HeadKind::Categorical;
    spec.head.inputs = {"flat"};
    spec.head.settings = {{"count", std::string("candidate_count")}};
    return spec;
}

}  // namespace examples
