/// @file
/// Checks that heads over choices and heads over vectors share.
#pragma once

#include <string>

#include "policy/compiler.hpp"

namespace rl4sys::detail {

/// How errors name the head.
inline const char* const head_label = "its head";

/// The choices of an action, group after group; empty for a box.
std::vector<std::size_t> groups_of(const ActionSpec& action);

/// Refuse a head with other numbers of inputs and tensors. @throws BadPolicy
void expect_sizes(const PolicySpec& spec, std::size_t inputs, std::size_t tensors);

/// The head's input at this index, which must be a vector of this size. @throws BadPolicy
Register read_vector(Compiler& compiler, std::size_t index, std::size_t values);

}  // namespace rl4sys::detail
