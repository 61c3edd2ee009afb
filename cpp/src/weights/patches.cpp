#include <cstring>
#include <memory>
#include <utility>

#include "rl4sys/weights.hpp"
#include "weights/byte_order.hpp"
#include "weights/packing.hpp"

namespace rl4sys {
namespace {

static_assert(little_endian, "Patches are decoded as they lie in memory; add a swap for other machines.");

PatchMismatch mismatch(const Patch& patch, const std::string& problem) {
    const std::string origin = patch.base ? "version " + std::to_string(*patch.base) : "a full copy";
    return PatchMismatch("Cannot make version " + std::to_string(patch.target) + " from " + origin + ": " + problem +
                         ". Keep acting with the present weights and pull in full.");
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
