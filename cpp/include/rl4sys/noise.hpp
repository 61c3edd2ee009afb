/// @file
/// Keyed noise: random numbers by seed, stream and step, the same in every language.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace rl4sys {

/// Names one sequence of episodes.
struct StreamKey {
    std::string client;
    std::string agent = "agent";
    std::uint64_t lane = 0;
};

/// Philox4x32-10 (Salmon et al., SC 2011): four random words from a counter and a key.
std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) noexcept;

/// The two key words of a stream: the first eight bytes of SHA-256 over seed, client, agent and lane.
std::array<std::uint32_t, 2> stream_key(std::uint64_t seed, const StreamKey& stream);

/// Uniform numbers of one stream, a fixed count per step. Any step may be asked for, in any order.
class KeyedNoise {
public:
    /// `size` numbers per step; `noise_size(spec)` says how many a policy takes.
    KeyedNoise(std::uint64_t seed, const StreamKey& stream, std::size_t size);
    /// The numbers of the stream with this key.
    KeyedNoise(std::array<std::uint32_t, 2> key, std::size_t size) noexcept : key_(key), size_(size) {}

    /// Write the `size()` numbers in [0, 1), of 24 bits each, that belong to `step`.
    void at(std::uint64_t step, float* numbers) const noexcept;

    std::size_t size() const noexcept { return size_; }

private:
    std::array<std::uint32_t, 2> key_;
    std::size_t size_;
};

/// A standard normal number from two uniform ones (Box-Muller in float64, rounded to float32).
float normal(float first, float second) noexcept;

}  // namespace rl4sys
