#include <openssl/evp.h>

#include <cstring>
#include <memory>
#include <stdexcept>

#include "rl4sys/weights.hpp"
#include "weights/byte_order.hpp"

namespace rl4sys {

Digest sha256(const void* data, std::size_t bytes) {
    Digest digest{};
    unsigned int length = 0;
    if (EVP_Digest(data, bytes, digest.data(), &length, EVP_sha256(), nullptr) != 1 || length != digest.size()) {
        throw std::runtime_error("OpenSSL could not compute SHA-256; check the configuration of its providers.");
    }
    return digest;
}

Digest sha256(const Weights& weights) {
    static_assert(little_endian, "Weights are hashed as they lie in memory; add a swap for other machines.");
    return sha256(weights.data(), weights.size() * sizeof(float));
}

std::string to_hex(const Digest& digest) {
    constexpr char digits[] = "0123456789abcdef";
    std::string text;
    for (const std::uint8_t byte : digest) {
        text += digits[byte >> 4];
        text += digits[byte & 15];
    }
    return text;
}

}  // namespace rl4sys
