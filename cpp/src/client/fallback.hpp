/// Calls the fallback of the system and checks what it returns.
#pragma once

#include <optional>
#include <string>

#include "client/action_adapter.hpp"
#include "rl4sys/fallback.hpp"

namespace rl4sys::client {

/// Calls the fallback and checks what it returns.
class FallbackDecider {
public:
    /// `action`: what the settings say about actions, for the time before the first policy.
    FallbackDecider(Fallback fallback, const std::optional<ActionSpec>& action,
                    std::shared_ptr<const ActionStructure> structure);

    /// Choose an action. `actions`: what the policy says about actions; null before the first one.
    /// Returns what is wrong, or an empty string.
    std::string decide(const Observation& observation, const ActionAdapter* actions, ActionValues& action) const;

private:
    Fallback fallback_;
    std::optional<ActionAdapter> actions_;
};

}  // namespace rl4sys::client
