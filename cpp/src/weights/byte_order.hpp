/// @file
/// Weights and arrays travel little-endian, as they lie in the memory of every machine that is supported.
#pragma once

namespace rl4sys {

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
inline constexpr bool little_endian = true;
#else
inline constexpr bool little_endian = false;
#endif

}  // namespace rl4sys
