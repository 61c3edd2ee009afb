/// @file
/// The kernel sets of this machine. Apart from kernels.hpp, which may not bring inline functions into the kernels.
#pragma once

#include <vector>

#include "policy/kernels.hpp"

namespace rl4sys::detail {

/// All that this machine can run, the fastest first.
std::vector<const Kernels*> available_kernels();

}  // namespace rl4sys::detail
