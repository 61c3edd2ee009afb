/// Turns decisions of a policy into actions of the system, and actions of a fallback into what is recorded.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rl4sys/action_structure.hpp"
#include "rl4sys/fallback.hpp"
#include "rl4sys/policy.hpp"

namespace rl4sys::client {

/// The choices and the real numbers of one action, numbered as in the system and within their bounds.
struct ActionValues {
    std::vector<std::int64_t> choices;
    std::vector<float> numbers;
};

/// The two directions for one kind of action.
class ActionAdapter {
public:
    /// `structure`: the parts that the action is made of; null if it has none.
    explicit ActionAdapter(const ActionSpec& action, std::shared_ptr<const ActionStructure> structure = nullptr);

    /// The action of a decision: shifted to its first choice, or clipped to its bounds. The decision itself is
    /// recorded.
    void finish(const Decision& decision, ActionValues& action) const;
    /// Check the action of a fallback and turn it into choices and numbers; returns what is wrong, or an empty string.
    std::string read(const FallbackAction& given, ActionValues& action) const;
    /// The row that is recorded for an action: either choices counted from 0, or numbers.
    ActionValues row(const ActionValues& action) const;
    /// The choices of an action that was read, counted from 0.
    std::vector<std::int64_t> choices(const ActionValues& action) const;
    /// Whether the policy decided an action that was read, or nearly so.
    bool agree(const Decision& decision, const ActionValues& action) const;

private:
    std::string flatten(const FallbackAction& given, ActionValues& action) const;

    std::shared_ptr<const ActionStructure> structure_;
    std::vector<std::int64_t> sizes_;   ///< Of the choices.
    std::vector<std::int64_t> starts_;  ///< The number of each first choice in the system.
    std::vector<float> low_;
    std::vector<float> high_;
    std::vector<float> spread_;  ///< From low to high; 1 where a bound is infinite.
    bool is_one_ = false;        ///< One choice, not a vector of them.
    bool is_mixed_ = false;      ///< A decision has its choices in front of its numbers.
};

}  // namespace rl4sys::client
