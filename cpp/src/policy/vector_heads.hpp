/// @file
/// Heads over vectors of real numbers.
#pragma once

#include "policy/compiler.hpp"

namespace rl4sys::detail {

/// Compiles a head that produces vectors; empty for a head that only has choices.
Decide compile_vector_head(Compiler& compiler, const BoxAction& box);

}  // namespace rl4sys::detail
