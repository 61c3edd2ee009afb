/// @file
/// The fallback: the system's own rule, which decides where the policy may not or cannot.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "rl4sys/observation.hpp"

namespace rl4sys {

struct FallbackPart;

/// The action of a fallback: choices, numbers, or for mixed actions both, or parts by name.
///
/// Choices are numbered as in the system. Those of a structured action are in the order of its parts.
struct FallbackAction {
    FallbackAction(std::int64_t choice) : choices{choice} {}  // NOLINT(google-explicit-constructor)
    FallbackAction(int choice) : choices{choice} {}           // NOLINT(google-explicit-constructor)
    FallbackAction(std::vector<std::int64_t> several) : choices(std::move(several)) {}  // NOLINT
    FallbackAction(std::vector<float> values) : numbers(std::move(values)) {}           // NOLINT
    FallbackAction(std::vector<std::int64_t> several, std::vector<float> values)
        : choices(std::move(several)), numbers(std::move(values)) {}
    /// `{{"server", 2}, {"rate", std::vector<float>{0.5F}}}`.
    FallbackAction(std::initializer_list<FallbackPart> named);

    std::vector<std::int64_t> choices;
    std::vector<float> numbers;
    std::vector<FallbackPart> parts;
};

/// One part of a structured action.
struct FallbackPart {
    FallbackPart(std::string name, std::int64_t choice) : path(std::move(name)), choices{choice} {}
    FallbackPart(std::string name, int choice) : path(std::move(name)), choices{choice} {}
    FallbackPart(std::string name, std::vector<std::int64_t> several)
        : path(std::move(name)), choices(std::move(several)) {}
    FallbackPart(std::string name, std::vector<float> values) : path(std::move(name)), numbers(std::move(values)) {}

    /// As in `ActionPart`.
    std::string path;
    std::vector<std::int64_t> choices;
    std::vector<float> numbers;
};

inline FallbackAction::FallbackAction(std::initializer_list<FallbackPart> named) : parts(named) {}

/// Chooses an action for an observation, as the system passed it. It may be called by several threads at once.
using Fallback = std::function<FallbackAction(const Observation& observation)>;

}  // namespace rl4sys
