/// Policies and arrays to and from messages.
#pragma once

#include <rl4sys/v1/policy.pb.h>

#include <string>
#include <vector>

#include "rl4sys/policy_spec.hpp"
#include "wire/errors.hpp"

namespace rl4sys::wire {

v1::ArraySpec encode_array(const ArraySpec& spec);
/// @throws ContractViolation
ArraySpec decode_array(const v1::ArraySpec& message);
/// The arrays of a group, whose names must differ. @throws ContractViolation
std::vector<ArraySpec> decode_arrays(const std::string& group,
                                     const google::protobuf::RepeatedPtrField<v1::ArraySpec>& messages);

v1::ActionSpec encode_action(const ActionSpec& action);
/// @throws ContractViolation
ActionSpec decode_action(const v1::ActionSpec& message);

/// The policy in a message. Its program is checked when a `Policy` is made of it.
/// @throws ContractViolation
PolicySpec decode_policy(const v1::PolicySpec& message);

}  // namespace rl4sys::wire
