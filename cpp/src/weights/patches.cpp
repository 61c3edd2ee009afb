#include <zstd.h>

#include <cstring>
#include <memory>
#include <utility>

#include "rl4sys/weights.hpp"
#include "weights/byte_order.hpp"

namespace rl4sys {
namespace {

static_assert(little_endian, "Patches are decoded as they lie in memory; add a swap for other machines.");

/// Packed bytes cannot be what the sender meant.
class CorruptPayload : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

PatchMismatch mismatch(const Patch& patch, const std::string& problem) {
    const std::string origin = patch.base ? "version " + std::to_string(*patch.base) : "a full copy";
    return PatchMismatch("Cannot make version " + std::to_string(patch.target) + " from " + origin + ": " + problem +
                         ". Keep acting with the present weights and pull in full.");
}

/// The content of one zstd frame, which must be exactly `size` bytes: nothing else is ever allocated.
std::vector<std::uint8_t> decompress(const char* payload, std::size_t bytes, std::size_t size) {
    const unsigned long long stated = ZSTD_getFrameContentSize(payload, bytes);
    if (stated == ZSTD_CONTENTSIZE_ERROR || stated == ZSTD_CONTENTSIZE_UNKNOWN) {
        throw CorruptPayload("the payload of " + std::to_string(bytes) +
                             " bytes is no zstd frame that states its size");
    }
    if (stated != size) {
        throw CorruptPayload("the payload states " + std::to_string(stated) + " bytes of content; expected " +
                             std::to_string(size));
    }
    // ZSTD_decompress would go on with a second frame.
    if (ZSTD_findFrameCompressedSize(payload, bytes) != bytes) {
        throw CorruptPayload("the payload of " + std::to_string(bytes) + " bytes is cut or has bytes after its frame");
    }
    std::vector<std::uint8_t> content(size);
    const std::size_t written = ZSTD_decompress(content.data(), content.size(), payload, bytes);
    if (ZSTD_isError(written) != 0) {
        throw CorruptPayload(std::string("the payload is damaged: ") + ZSTD_getErrorName(written));
    }
    if (written != size) throw CorruptPayload("the payload ends before its stated size");
    return content;
}

/// Undo the byte planes: all lowest bytes come first, then all second bytes, and so on.
std::vector<std::uint32_t> from_planes(const std::vector<std::uint8_t>& planes) {
    const std::size_t count = planes.size() / 4;
    std::vector<std::uint32_t> words(count);
    const std::uint8_t* plane = planes.data();
    for (std::size_t i = 0; i < count; ++i) {
        words[i] = static_cast<std::uint32_t>(plane[i]) | static_cast<std::uint32_t>(plane[count + i]) << 8 |
                   static_cast<std::uint32_t>(plane[2 * count + i]) << 16 |
                   static_cast<std::uint32_t>(plane[3 * count + i]) << 24;
    }
    return words;
}

const Weights& required_base(const Weights* base, const Patch& patch) {
    if (base == nullptr) throw mismatch(patch, "it needs a base, and there is none");
    if (base->size() != patch.size) {
        throw mismatch(patch, "the base has " + std::to_string(base->size()) + " weights, but it is for " +
                                  std::to_string(patch.size));
    }
    return *base;
}

/// Weights whose bits are `words`, each combined with the base's by exclusive or if there is one.
Weights from_bits(std::vector<std::uint32_t> words, const Weights* base) {
    for (std::size_t i = 0; base != nullptr && i < words.size(); ++i) {
        std::uint32_t bits = 0;
        std::memcpy(&bits, base->data() + i, sizeof(bits));
        words[i] ^= bits;
    }
    Weights weights(words.size());
    if (!words.empty()) std::memcpy(weights.data(), words.data(), words.size() * sizeof(float));
    return weights;
}

Weights decode(const Weights* base, const Patch& patch) {
    const std::size_t bytes = 4 * static_cast<std::size_t>(patch.size);
    const std::string& payload = patch.payload;
    switch (patch.encoding) {
        case Encoding::Raw: {
            if (payload.size() != bytes) {
                throw CorruptPayload("the payload has " + std::to_string(payload.size()) + " bytes; expected " +
                                     std::to_string(bytes));
            }
            Weights weights(static_cast<std::size_t>(patch.size));
            if (bytes > 0) std::memcpy(weights.data(), payload.data(), bytes);
            return weights;
        }
        case Encoding::Planes:
            return from_bits(from_planes(decompress(payload.data(), payload.size(), bytes)), nullptr);
        case Encoding::Xor: {
            const Weights& from = required_base(base, patch);
            return from_bits(from_planes(decompress(payload.data(), payload.size(), bytes)), &from);
        }
    }
    throw CorruptPayload("its encoding is " + std::to_string(static_cast<int>(patch.encoding)) +
                         ", which this version does not know");
}

}  // namespace

SharedWeights apply_patch(const Weights* base, const Patch& patch, std::size_t size) {
    if (patch.size != size) {
        throw mismatch(
            patch, "it is for " + std::to_string(patch.size) + " weights, but this policy has " + std::to_string(size));
    }
    Weights weights;
    try {
        weights = decode(base, patch);
    } catch (const CorruptPayload& error) {
        throw mismatch(patch, error.what());
    }
    if (sha256(weights) != patch.sha256) {
        throw mismatch(patch, "the result has another SHA-256 than the published version");
    }
    return std::make_shared<const Weights>(std::move(weights));
}

}  // namespace rl4sys
