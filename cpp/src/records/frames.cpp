#include "records/frames.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "records/bytes.hpp"
#include "records/crc32.hpp"

namespace rl4sys::records {
namespace {

constexpr std::uint32_t format_version = 1;
constexpr std::string_view suffix = ".records";
constexpr std::string_view magic = "RL4SRECS";
constexpr std::string_view mark = "\xf5rec";
constexpr std::size_t digit_count = 20;

/// The number in a name, if it is the name of a record file.
std::optional<std::uint64_t> number_of(std::string_view name) {
    if (name.size() != digit_count + suffix.size() || name.substr(digit_count) != suffix) {
        return std::nullopt;
    }
    std::uint64_t number = 0;
    for (const char digit : name.substr(0, digit_count)) {
        const auto value = static_cast<std::uint64_t>(digit - '0');
        if (digit < '0' || digit > '9' || number > (std::numeric_limits<std::uint64_t>::max() - value) / 10) {
            return std::nullopt;
        }
        number = 10 * number + value;
    }
    return number;
}

}  // namespace

std::string file_name(std::uint64_t first) {
    const std::string digits = std::to_string(first);
    return std::string(digit_count - digits.size(), '0').append(digits).append(suffix);
}

std::vector<std::uint64_t> first_numbers(const std::vector<std::string>& names) {
    std::vector<std::uint64_t> numbers;
    for (const std::string& name : names) {
        if (const auto number = number_of(name)) {
            numbers.push_back(*number);
        }
    }
    std::sort(numbers.begin(), numbers.end());
    return numbers;
}

std::string encode_header(std::uint64_t first) {
    std::string head(magic);
    put32(head, format_version);
    put64(head, first);
    put32(head, crc32(head));
    return head;
}

std::string header_fault(std::string_view data, std::uint64_t first) {
    if (data.size() < header_bytes) {
        return "it has " + std::to_string(data.size()) + " bytes, and a header takes " + std::to_string(header_bytes);
    }
    if (data.substr(0, magic.size()) != magic) {
        return "it does not begin like a file of records";
    }
    if (get32(data, 20) != crc32(data.substr(0, 20))) {
        return "the CRC of its header does not match";
    }
    if (const std::uint32_t version = get32(data, 8); version != format_version) {
        return "it has format " + std::to_string(version) + ", and this version of rl4sys reads format " +
               std::to_string(format_version);
    }
    if (const std::uint64_t number = get64(data, 12); number != first) {
        return "its header says that record " + std::to_string(number) + " comes first";
    }
    return "";
}

void append_frame(std::string& out, std::uint64_t number, std::uint64_t durable, std::string_view payload) {
    if (payload.size() > max_payload) {
        throw std::length_error("A record of " + std::to_string(payload.size()) + " bytes is too long; at most " +
                                std::to_string(max_payload) + " fit. Send it in parts.");
    }
    const std::size_t begin = out.size();
    out.append(mark);
    put32(out, static_cast<std::uint32_t>(payload.size()));
    put64(out, number);
    put64(out, durable);
    put32(out, crc32(payload, crc32(std::string_view(out).substr(begin))));
    out.append(payload);
}

std::optional<Frame> decode_frame(std::string_view data, std::size_t offset) {
    if (offset > data.size() || data.size() - offset < frame_bytes || data.substr(offset, mark.size()) != mark) {
        return std::nullopt;
    }
    const std::size_t length = get32(data, offset + 4);
    const std::size_t begin = offset + frame_bytes;
    if (length > data.size() - begin) {
        return std::nullopt;
    }
    const std::uint32_t crc = crc32(data.substr(begin, length), crc32(data.substr(offset, frame_bytes - 4)));
    if (crc != get32(data, begin - 4)) {
        return std::nullopt;
    }
    return Frame{get64(data, offset + 8), get64(data, offset + 16), begin, begin + length};
}

std::size_t find_mark(std::string_view data, std::size_t offset) {
    return data.find(mark, offset);
}

}  // namespace rl4sys::records
