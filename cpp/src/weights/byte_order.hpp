/// @file
/// Weights and arrays are little-endian on the wire, as in the memory of every supported machine.
#pragma once

namespace rl4sys {

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
inline constexpr bool little_endian = true;
#else
inline constexpr bool little_endian = false;
#endif

}  // namespace rl4sys
