/// @file
/// Structured actions: named or nested parts, which a policy decides as one flat action.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rl4sys/policy_spec.hpp"

namespace rl4sys {

/// One part of a structured action, and where its values are among the choices or numbers of the flat action.
struct ActionPart {
    /// Names and positions joined by dots: `server`, `route.backup` or `route.0`.
    std::string path;
    /// Choices or real numbers, not both.
    ActionSpec spec;
    std::size_t at = 0;
    std::size_t size = 0;
    bool is_choice = true;
};

/// The parts of an action, and how they follow each other in a flat one: all choices first, then all real numbers.
///
/// Parts that are all choices make a multi-discrete action, parts that are all real numbers make a box, and others a
/// mixed action.
class ActionStructure {
public:
    /// Parts by path, in the order of the settings. @throws std::invalid_argument without parts, for a mixed one, and
    /// for two of the same path.
    explicit ActionStructure(const std::vector<std::pair<std::string, ActionSpec>>& parts);

    const std::vector<ActionPart>& parts() const noexcept { return parts_; }
    /// The part of this path; null if there is none.
    const ActionPart* find(std::string_view path) const noexcept;
    /// The flat action.
    const ActionSpec& spec() const noexcept { return spec_; }

private:
    std::vector<ActionPart> parts_;
    ActionSpec spec_;
};

}  // namespace rl4sys
