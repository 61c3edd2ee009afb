#include <cstdint>
#include <cstring>

#include "rl4sys/weights.hpp"
#include "weights/byte_order.hpp"

namespace rl4sys {
namespace {

/// Bytes of one block of SHA-256 (FIPS 180-4).
constexpr std::size_t block_bytes = 64;

constexpr std::array<std::uint32_t, 64> round_constants = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

using State = std::array<std::uint32_t, 8>;

constexpr std::uint32_t rotated(std::uint32_t word, int bits) noexcept {
    return (word >> bits) | (word << (32 - bits));
}

std::uint32_t big_endian(const std::uint8_t* bytes) noexcept {
    return std::uint32_t{bytes[0]} << 24 | std::uint32_t{bytes[1]} << 16 | std::uint32_t{bytes[2]} << 8 | bytes[3];
}

/// Section 6.2.2 of FIPS 180-4, for one block.
void compress_block(State& state, const std::uint8_t* block) noexcept {
    std::array<std::uint32_t, 64> words;
    for (std::size_t i = 0; i < 16; ++i) words[i] = big_endian(block + 4 * i);
    for (std::size_t i = 16; i < 64; ++i) {
        const std::uint32_t early = words[i - 15], late = words[i - 2];
        words[i] = words[i - 16] + (rotated(early, 7) ^ rotated(early, 18) ^ (early >> 3)) + words[i - 7] +
                   (rotated(late, 17) ^ rotated(late, 19) ^ (late >> 10));
    }
    auto [a, b, c, d, e, f, g, h] = state;
    for (std::size_t i = 0; i < 64; ++i) {
        const std::uint32_t first = h + (rotated(e, 6) ^ rotated(e, 11) ^ rotated(e, 25)) + ((e & f) ^ (~e & g)) +
                                    round_constants[i] + words[i];
        const std::uint32_t second = (rotated(a, 2) ^ rotated(a, 13) ^ rotated(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
        h = g;
        g = f;
        f = e;
        e = d + first;
        d = c;
        c = b;
        b = a;
        a = first + second;
    }
    const State added = {a, b, c, d, e, f, g, h};
    for (std::size_t i = 0; i < state.size(); ++i) state[i] += added[i];
}

}  // namespace

// Written out, so that the policy runtime needs no library for it: it hashes the names of streams, and weights in
// background threads.
Digest sha256(const void* data, std::size_t bytes) {
    State state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    const auto* next = static_cast<const std::uint8_t*>(data);
    std::size_t left = bytes;
    for (; left >= block_bytes; left -= block_bytes, next += block_bytes) compress_block(state, next);
    // The rest, a one bit, zeros, and the length in bits: one block, or two.
    std::array<std::uint8_t, 2 * block_bytes> tail{};
    if (left > 0) std::memcpy(tail.data(), next, left);
    tail[left] = 0x80;
    const std::size_t end = left + 9 <= block_bytes ? block_bytes : 2 * block_bytes;
    for (std::size_t byte = 0; byte < 8; ++byte) {
        tail[end - 1 - byte] = static_cast<std::uint8_t>((std::uint64_t{bytes} << 3) >> (8 * byte));
    }
    for (std::size_t at = 0; at < end; at += block_bytes) compress_block(state, tail.data() + at);
    Digest digest{};
    for (std::size_t byte = 0; byte < digest.size(); ++byte) {
        digest[byte] = static_cast<std::uint8_t>(state[byte / 4] >> (24 - 8 * (byte % 4)));
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
