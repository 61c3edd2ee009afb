/// The format of record files: a header, then frames. FORMAT.md of the Python package specifies it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rl4sys::records {

inline constexpr std::size_t header_bytes = 24;
inline constexpr std::size_t frame_bytes = 28;
inline constexpr std::size_t max_payload = std::size_t{1} << 30;

/// The position of a record within some bytes.
struct Frame {
    std::uint64_t number = 0;
    std::uint64_t durable = 0;  ///< Every record below this number was on the disk when this one was written.
    std::size_t begin = 0;
    std::size_t end = 0;  ///< The payload is [begin, end); the next frame begins at `end`.
};

/// The name of the file whose first record has this number; names sort like numbers.
std::string file_name(std::uint64_t first);

/// The first record numbers of the record files among some names, in order; other names are ignored.
std::vector<std::uint64_t> first_numbers(const std::vector<std::string>& names);

/// The beginning of a file whose first record has this number.
std::string encode_header(std::uint64_t first);

/// Why these bytes are not the header of the file that begins with record `first`; empty if they are.
std::string header_fault(std::string_view data, std::uint64_t first);

/// Append one record in the format of a file.
void append_frame(std::string& out, std::uint64_t number, std::uint64_t durable, std::string_view payload);

/// The frame at `offset` if it is whole and its CRC matches.
std::optional<Frame> decode_frame(std::string_view data, std::size_t offset);

/// Where the next frame could begin, from `offset` on; npos if nowhere.
std::size_t find_mark(std::string_view data, std::size_t offset);

}  // namespace rl4sys::records
