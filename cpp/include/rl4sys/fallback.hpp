/// @file
/// The fallback: the system's own rule, which decides where the policy may not or cannot.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <type_traits>
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
///
/// Made from anything that can be called with an observation, or with an observation and the mask that `act` was given
/// (`mask.given()` is false if there was none): `[](const rl4sys::Observation& seen, rl4sys::ArrayView mask) {…}`.
class Fallback {
public:
    Fallback() = default;
    Fallback(std::nullptr_t) {}  // NOLINT(google-explicit-constructor)
    template <typename Call, std::enable_if_t<std::is_invocable_v<Call&, const Observation&, ArrayView>, int> = 0>
    Fallback(Call call) {  // NOLINT(google-explicit-constructor)
        if (is_callable(call)) {
            call_ = std::move(call);
        }
    }
    template <typename Call, std::enable_if_t<!std::is_invocable_v<Call&, const Observation&, ArrayView> &&
                                                  std::is_invocable_v<Call&, const Observation&>,
                                              int> = 0>
    Fallback(Call call) {  // NOLINT(google-explicit-constructor)
        if (is_callable(call)) {
            call_ = [call = std::move(call)](const Observation& observation, ArrayView) mutable -> FallbackAction {
                return call(observation);
            };
        }
    }

    explicit operator bool() const noexcept { return static_cast<bool>(call_); }
    FallbackAction operator()(const Observation& observation, ArrayView mask = {}) const {
        return call_(observation, mask);
    }
    friend bool operator==(const Fallback& fallback, std::nullptr_t) noexcept { return !fallback; }
    friend bool operator!=(const Fallback& fallback, std::nullptr_t) noexcept { return static_cast<bool>(fallback); }

private:
    /// Null pointers and empty functions are no fallback.
    template <typename Call>
    static bool is_callable(const Call& call) {
        if constexpr (std::is_constructible_v<bool, const Call&> && !std::is_class_v<Call>) {
            return static_cast<bool>(call);
        } else if constexpr (std::is_same_v<Call, std::function<FallbackAction(const Observation&)>> ||
                             std::is_same_v<Call, std::function<FallbackAction(const Observation&, ArrayView)>>) {
            return static_cast<bool>(call);
        }
        return true;
    }

    std::function<FallbackAction(const Observation&, ArrayView)> call_;
};

}  // namespace rl4sys
