/// @file
/// The op set by name.
#pragma once

#include <string>
#include <vector>

namespace rl4sys::detail {

/// Whether `compile_op` knows an op of this name.
bool knows_op(const std::string& kind);

}  // namespace rl4sys::detail
