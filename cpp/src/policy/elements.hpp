/// @file
/// Converts observations from their wire types to the numbers that ops compute with.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rl4sys/arrays.hpp"

namespace rl4sys::detail {

/// Write `count` values of any type as float32. `from` needs no alignment.
void to_floats(const void* from, ElementType type, float* to, std::size_t count) noexcept;

/// The value at `index` as an integer; -1 if it does not fit into 64 bits.
std::int64_t index_at(const void* from, ElementType type, std::size_t index) noexcept;

/// A float without its fraction; -1 for NaN and values beyond 64 bits.
std::int64_t whole_part(double value) noexcept;

}  // namespace rl4sys::detail
