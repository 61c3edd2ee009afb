/// @file
/// Memory of decisions that begins with a cache line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace rl4sys::detail {

/// How many floats a cache line has.
inline constexpr std::size_t cache_line = 16;

/// Floats, zero at first, of which the first begins a cache line.
class Registers {
public:
    Registers() = default;
    explicit Registers(std::size_t values) : memory_(values + cache_line - 1) {
        constexpr std::uintptr_t bytes = cache_line * sizeof(float);
        const auto address = reinterpret_cast<std::uintptr_t>(memory_.data());
        begin_ = static_cast<std::size_t>((bytes - address % bytes) % bytes) / sizeof(float);
    }

    float* data() noexcept { return memory_.data() + begin_; }

private:
    std::vector<float> memory_;
    std::size_t begin_ = 0;
};

}  // namespace rl4sys::detail
