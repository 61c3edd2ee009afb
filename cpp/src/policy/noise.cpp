#include "rl4sys/noise.hpp"

#include <algorithm>
#include <cmath>

#include "rl4sys/weights.hpp"

namespace rl4sys {

std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) noexcept {
    auto [a, b, c, d] = counter;
    auto [left, right] = key;
    for (int round = 0; round < 10; ++round) {
        const std::uint64_t first = std::uint64_t{0xD2511F53} * a;
        const std::uint64_t second = std::uint64_t{0xCD9E8D57} * c;
        a = static_cast<std::uint32_t>(second >> 32) ^ b ^ left;
        b = static_cast<std::uint32_t>(second);
        c = static_cast<std::uint32_t>(first >> 32) ^ d ^ right;
        d = static_cast<std::uint32_t>(first);
        left += 0x9E3779B9;
        right += 0xBB67AE85;
    }
    return {a, b, c, d};
}

std::array<std::uint32_t, 2> stream_key(std::uint64_t seed, const StreamKey& stream) {
    constexpr char separator = '\x1f';
    const std::string text = std::to_string(seed) + separator + stream.client + separator + stream.agent + separator +
                             std::to_string(stream.lane);
    const Digest digest = sha256(text.data(), text.size());
    std::array<std::uint32_t, 2> key{};
    for (std::size_t byte = 0; byte < 8; ++byte) {
        key[byte / 4] |= static_cast<std::uint32_t>(digest[byte]) << (8 * (byte % 4));
    }
    return key;
}

KeyedNoise::KeyedNoise(std::uint64_t seed, const StreamKey& stream, std::size_t size)
    : key_(stream_key(seed, stream)), size_(size) {}

void KeyedNoise::at(std::uint64_t step, float* numbers) const noexcept {
    const auto low = static_cast<std::uint32_t>(step), high = static_cast<std::uint32_t>(step >> 32);
    for (std::size_t first = 0; first < size_; first += 4) {
        const auto words = philox({low, high, static_cast<std::uint32_t>(first / 4), 0}, key_);
        const std::size_t count = std::min<std::size_t>(4, size_ - first);
        for (std::size_t word = 0; word < count; ++word) {
            numbers[first + word] = static_cast<float>(words[word] >> 8) * 0x1p-24F;
        }
    }
}

float normal(float first, float second) noexcept {
    constexpr double two_pi = 2.0 * 3.141592653589793;
    const double radius = std::sqrt(-2.0 * std::log1p(-static_cast<double>(first)));
    return static_cast<float>(radius * std::cos(two_pi * static_cast<double>(second)));
}

}  // namespace rl4sys
