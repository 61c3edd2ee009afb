/// @file
/// Unpacks weights from the wire without trusting them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace rl4sys {

/// A packed payload is damaged.
class CorruptPayload : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// The content of one zstd frame, which must be exactly `size` bytes: nothing else is ever allocated.
/// @throws CorruptPayload
std::vector<std::uint8_t> decompress(const char* payload, std::size_t bytes, std::size_t size);

/// One zstd frame that states the size of its content; empty if it would not be smaller.
std::string compress(const std::string& content);

/// The words in byte planes: all lowest bytes come first, then all second bytes, and so on.
std::vector<std::uint32_t> from_planes(const std::vector<std::uint8_t>& planes);

}  // namespace rl4sys
