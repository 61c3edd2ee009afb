#include "records/crc32.hpp"

#include <array>

namespace rl4sys::records {
namespace {

using Tables = std::array<std::array<std::uint32_t, 256>, 8>;

/// Table t maps a byte to its CRC after t further zero bytes, so that eight bytes are taken in one step.
constexpr Tables make_tables() {
    Tables tables{};
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
        std::uint32_t crc = byte;
        for (int bit = 0; bit < 8; ++bit) {
            crc = (crc >> 1) ^ ((crc & 1U) != 0 ? 0xEDB88320U : 0U);
        }
        tables[0][byte] = crc;
    }
    for (std::size_t table = 1; table < tables.size(); ++table) {
        for (std::size_t byte = 0; byte < 256; ++byte) {
            const std::uint32_t crc = tables[table - 1][byte];
            tables[table][byte] = (crc >> 8) ^ tables[0][crc & 0xFFU];
        }
    }
    return tables;
}

constexpr Tables tables_of_bytes = make_tables();

std::uint32_t byte_at(std::string_view data, std::size_t at) {
    return static_cast<unsigned char>(data[at]);
}

}  // namespace

std::uint32_t crc32(std::string_view data, std::uint32_t before) {
    std::uint32_t crc = ~before;
    std::size_t at = 0;
    for (; at + 8 <= data.size(); at += 8) {
        crc ^=
            byte_at(data, at) | byte_at(data, at + 1) << 8 | byte_at(data, at + 2) << 16 | byte_at(data, at + 3) << 24;
        crc = tables_of_bytes[7][crc & 0xFFU] ^ tables_of_bytes[6][(crc >> 8) & 0xFFU] ^
              tables_of_bytes[5][(crc >> 16) & 0xFFU] ^ tables_of_bytes[4][crc >> 24] ^
              tables_of_bytes[3][byte_at(data, at + 4)] ^ tables_of_bytes[2][byte_at(data, at + 5)] ^
              tables_of_bytes[1][byte_at(data, at + 6)] ^ tables_of_bytes[0][byte_at(data, at + 7)];
    }
    for (; at < data.size(); ++at) {
        crc = (crc >> 8) ^ tables_of_bytes[0][(crc ^ byte_at(data, at)) & 0xFFU];
    }
    return ~crc;
}

}  // namespace rl4sys::records
