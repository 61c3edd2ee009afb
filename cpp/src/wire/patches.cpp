#include "wire/patches.hpp"

#include <algorithm>

namespace rl4sys::wire {
namespace {

constexpr std::uint64_t largest = (std::uint64_t{1} << 63) - 1;

[[noreturn]] void broken(const std::string& problem) {
    throw ContractViolation("A patch cannot be used: " + problem +
                            ". Keep acting with the present weights and pull in full (without `have`).");
}

/// The most bytes that a patch for `size` floats can have: a frame of zstd that could not compress anything.
std::uint64_t most_payload_bytes(std::size_t size) {
    return 5 * std::uint64_t{size} + 1024;
}

PatchHeader checked(const PatchChunk& chunk, std::size_t size) {
    if (!chunk.header) {
        broken("its first part has no header");
    }
    const PatchHeader& header = *chunk.header;
    if (header.size != size) {
        broken("it is for " + std::to_string(header.size) + " weights, but this policy has " + std::to_string(size));
    }
    if (header.encoding < static_cast<int>(Encoding::Raw) || header.encoding > static_cast<int>(Encoding::Xor)) {
        broken("it has encoding " + std::to_string(header.encoding) + ", which this version does not know");
    }
    if (header.base.has_value() == (header.encoding <= static_cast<int>(Encoding::Planes))) {
        broken("it is a full copy with a base, or a difference without one");
    }
    if (header.payload_bytes > most_payload_bytes(size)) {
        broken("it announces " + std::to_string(header.payload_bytes) + " bytes, more than " + std::to_string(size) +
               " weights can need");
    }
    if (header.sha256.size() != std::tuple_size_v<Digest> ||
        std::max(header.base.value_or(0), header.target) > largest) {
        broken("its SHA-256 has " + std::to_string(header.sha256.size()) + " bytes, or a version number is too large");
    }
    return header;
}

}  // namespace

Patch decode_patch(const NextChunk& next, std::size_t size) {
    std::optional<PatchHeader> header;
    Patch patch;
    while (auto chunk = next()) {
        if (!header) {
            header = checked(*chunk, size);
        } else if (chunk->header || chunk->payload.empty()) {
            broken("a later part has a header, or nothing in it");
        }
        patch.payload += chunk->payload;
        if (patch.payload.size() > header->payload_bytes) {
            broken("its parts have more than the " + std::to_string(header->payload_bytes) +
                   " bytes that it announced");
        }
    }
    if (!header) {
        broken("the stream ended before its first part");
    }
    if (patch.payload.size() != header->payload_bytes) {
        broken("the stream ended after " + std::to_string(patch.payload.size()) + " of " +
               std::to_string(header->payload_bytes) + " bytes");
    }
    patch.base = header->base;
    patch.target = header->target;
    patch.encoding = static_cast<Encoding>(header->encoding);
    patch.size = header->size;
    std::copy(header->sha256.begin(), header->sha256.end(), patch.sha256.begin());
    return patch;
}

}  // namespace rl4sys::wire
