/// How often this thread has asked for memory while it was counting.
#pragma once

#include <cstddef>

namespace rl4sys::testing {

/// Begin or stop counting in this thread.
void count_allocations(bool counting);
std::size_t counted_allocations();

}  // namespace rl4sys::testing
