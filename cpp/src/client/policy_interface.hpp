/// What a client does with a policy: which of its programs decides, and how steps are recorded.
#pragma once

#include <memory>
#include <string>

#include "rl4sys/acting_mode.hpp"
#include "rl4sys/policy.hpp"
#include "wire/segment_format.hpp"

namespace rl4sys::client {

/// Everything about acting with a policy except its weights; the same object for all its versions.
struct PolicyInterface {
    /// @throws ContractViolation for policies that cannot be run here or do not belong together, or if the exploit
    ///         policy is missing where the mode needs it.
    PolicyInterface(PolicySpec explore_policy, std::optional<PolicySpec> exploit_policy, ActingMode mode);

    std::shared_ptr<const PolicySpec> explore;
    std::shared_ptr<const PolicySpec> exploit;        ///< Over the same weights; null where it is not known.
    std::shared_ptr<const PolicySpec> acting;         ///< The policy that decides.
    std::shared_ptr<const wire::SegmentFormat> form;  ///< The format of its segments.
    std::string text;                                 ///< Canonical: equal policies have equal texts.
    std::size_t weight_count = 0;
};

using SharedInterface = std::shared_ptr<const PolicyInterface>;

/// Whether two kinds of actions are the same.
bool is_same(const ActionSpec& one, const ActionSpec& other);

}  // namespace rl4sys::client
