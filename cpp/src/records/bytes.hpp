/// Numbers in files: little-endian on every machine.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace rl4sys::records {

/// Append the lowest `width` bytes of a number.
inline void put(std::string& out, std::uint64_t value, int width) {
    for (int byte = 0; byte < width; ++byte) {
        out.push_back(static_cast<char>(value >> (8 * byte)));
    }
}

inline void put32(std::string& out, std::uint32_t value) {
    put(out, value, 4);
}
inline void put64(std::string& out, std::uint64_t value) {
    put(out, value, 8);
}

/// The number in `width` bytes from `at` on; the caller has checked the bounds.
inline std::uint64_t get(std::string_view data, std::size_t at, int width) {
    std::uint64_t value = 0;
    for (int byte = 0; byte < width; ++byte) {
        value |= std::uint64_t{static_cast<unsigned char>(data[at + static_cast<std::size_t>(byte)])} << (8 * byte);
    }
    return value;
}

inline std::uint32_t get32(std::string_view data, std::size_t at) {
    return static_cast<std::uint32_t>(get(data, at, 4));
}
inline std::uint64_t get64(std::string_view data, std::size_t at) {
    return get(data, at, 8);
}

}  // namespace rl4sys::records
