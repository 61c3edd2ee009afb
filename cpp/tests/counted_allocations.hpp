/// Counts the allocations of a thread.
#pragma once

#include <cstddef>

namespace rl4sys::testing {

/// Start counting from 0, or stop, in this thread.
void count_allocations(bool counting);
std::size_t counted_allocations();

}  // namespace rl4sys::testing
