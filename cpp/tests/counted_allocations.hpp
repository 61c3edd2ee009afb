/// How often this thread has asked for memory while it counted.
#pragma once

#include <cstddef>

namespace rl4sys::testing {

/// Begin to count from 0, or stop, in this thread.
void count_allocations(bool counting);
std::size_t counted_allocations();

}  // namespace rl4sys::testing
