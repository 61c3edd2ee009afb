/// @file
/// Observations as they travel become the numbers that ops compute with.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rl4sys/arrays.hpp"

namespace rl4sys::detail {

/// Write `count` values of any type as float32. `from` needs no alignment.
void to_floats(const void* from, ElementType type, float* to, std::size_t count) noexcept;

/// The value at `index` as a whole number; -1 for what is none within 64 bits.
std::int64_t index_at(const void* from, ElementType type, std::size_t index) noexcept;

/// A real number without its fraction; -1 for NaN and what exceeds 64 bits.
std::int64_t whole_part(double value) noexcept;

}  // namespace rl4sys::detail
