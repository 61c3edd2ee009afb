/// What a client does with a policy: which of its programs decides, and how steps are recorded.
#pragma once

#include <memory>
#include <string>

#include "client/action_adapter.hpp"
#include "client/observation_reader.hpp"
#include "rl4sys/acting_mode.hpp"
#include "rl4sys/policy.hpp"
#include "rl4sys/settings.hpp"
#include "wire/segment_format.hpp"

namespace rl4sys::client {

/// What the settings say about acting with a policy.
struct InterfaceSettings {
    InterfaceSettings(ActingMode acting_mode) : mode(acting_mode) {}  // NOLINT(google-explicit-constructor)
    explicit InterfaceSettings(const ClientSettings& settings)
        : mode(settings.mode), defaults(settings.defaults), structure(settings.action_structure) {}

    ActingMode mode;
    FeatureDefaults defaults;
    std::shared_ptr<const ActionStructure> structure;
};

/// Everything about acting with a policy except its weights; the same object for all its versions.
struct PolicyInterface {
    /// @throws ContractViolation for policies that cannot be run here or do not belong together, or if the exploit
    ///         policy is missing where the mode needs it.
    PolicyInterface(PolicySpec explore_policy, std::optional<PolicySpec> exploit_policy,
                    const InterfaceSettings& settings);
    /// The interface of a policy that decides on the server. @throws ContractViolation for defaults that do not fit.
    PolicyInterface(const wire::SegmentFormat& schema, const ActionSpec& kind, const InterfaceSettings& settings);

    /// Whether the client decides by itself; otherwise there are no policies and no weights here.
    bool is_local() const { return explore != nullptr; }

    ActionSpec action;
    std::shared_ptr<const PolicySpec> explore;
    std::shared_ptr<const PolicySpec> exploit;        ///< Over the same weights; null where it is not known.
    std::shared_ptr<const PolicySpec> acting;         ///< The policy that decides.
    std::shared_ptr<const wire::SegmentFormat> form;  ///< The format of its segments.
    std::string text;  ///< Canonical: equal policies have equal texts; empty if the server decides.
    std::size_t weight_count = 0;
    std::size_t noise_size = 0;  ///< Uniform numbers of one decision.
    std::size_t carry_size = 0;  ///< Values of its memory.
    ObservationReader reader;
    ActionAdapter actions;

private:
    /// Prepare what follows from the format.
    void read_form(const InterfaceSettings& settings);
};

using SharedInterface = std::shared_ptr<const PolicyInterface>;

/// Whether two kinds of actions are the same.
bool is_same(const ActionSpec& one, const ActionSpec& other);

}  // namespace rl4sys::client
