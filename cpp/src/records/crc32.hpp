/// The checksum of record files: the CRC-32 of zlib.
#pragma once

#include <cstdint>
#include <string_view>

namespace rl4sys::records {

/// The CRC of `data`; pass the CRC of the preceding bytes to continue it.
std::uint32_t crc32(std::string_view data, std::uint32_t before = 0);

}  // namespace rl4sys::records
