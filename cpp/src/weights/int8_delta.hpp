/// @file
/// The one computation of patches that rounds, in a file of its own so that its flags can be.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rl4sys {

/// Add `scale * quantised[i]` to every weight: one float32 multiplication and one float32 addition, each rounded to
/// nearest even and never fused, so that every runtime reaches the same bits.
void add_scaled(float* weights, const std::int8_t* quantised, float scale, std::size_t count) noexcept;

}  // namespace rl4sys
