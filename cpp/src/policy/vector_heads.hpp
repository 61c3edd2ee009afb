/// @file
/// Heads over vectors of real numbers.
#pragma once

#include "policy/compiler.hpp"

namespace rl4sys::detail {

/// Compiles a head that produces vectors; empty for a head that only has choices.
Decide compile_vector_head(Compiler& compiler, const BoxAction& box);

/// A Gaussian over `size` registers from `mean` on, with weights from `log_std` on.
Decide gaussian(std::size_t mean, std::size_t log_std, std::size_t size);

/// `size` registers from `value` on as they are.
Decide unchanged(std::size_t value, std::size_t size);

}  // namespace rl4sys::detail
