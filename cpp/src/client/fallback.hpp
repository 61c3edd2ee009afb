/// Calls the fallback of the system and checks what it returns.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/action_adapter.hpp"
#include "client/policy_interface.hpp"
#include "rl4sys/fallback.hpp"

namespace rl4sys::client {

/// Calls the fallback and checks what it returns.
class FallbackDecider {
public:
    /// `action`, `observation`: what the settings say about them, for the time before the first policy.
    FallbackDecider(Fallback fallback, const std::optional<ActionSpec>& action,
                    std::shared_ptr<const ActionStructure> structure, const std::vector<ArraySpec>& observation);

    /// Choose an action. `interface`: that of the policy; null before the first one.
    /// Returns what is wrong, or an empty string.
    std::string decide(const Observation& observation, ArrayView mask, const PolicyInterface* interface,
                       ActionValues& action) const;

private:
    Fallback fallback_;
    std::optional<ActionAdapter> actions_;
    ObservationReader reader_;
};

}  // namespace rl4sys::client
