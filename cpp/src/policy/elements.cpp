#include "policy/elements.hpp"

#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

namespace rl4sys::detail {
namespace {

/// IEEE 754 binary16, by its bits.
struct Half {
    std::uint16_t bits;
};

float real(Half half) {
    const int exponent = (half.bits >> 10) & 0x1F, fraction = half.bits & 0x3FF;
    float magnitude = 0.0F;
    if (exponent == 0) {
        magnitude = std::ldexp(static_cast<float>(fraction), -24);
    } else if (exponent == 31) {
        magnitude = fraction == 0 ? INFINITY : NAN;
    } else {
        magnitude = std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
    }
    return (half.bits & 0x8000) != 0 ? -magnitude : magnitude;
}

template <typename Value>
Value read(const void* from, std::size_t index) {
    Value value;
    std::memcpy(&value, static_cast<const char*>(from) + index * sizeof(Value), sizeof(Value));
    return value;
}

template <typename Value>
void convert(const void* from, float* to, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        if constexpr (std::is_same_v<Value, Half>) {
            to[i] = real(read<Half>(from, i));
        } else {
            to[i] = static_cast<float>(read<Value>(from, i));
        }
    }
}

}  // namespace

void to_floats(const void* from, ElementType type, float* to, std::size_t count) noexcept {
    switch (type) {
        case ElementType::Bool:
        case ElementType::UInt8: return convert<std::uint8_t>(from, to, count);
        case ElementType::UInt16: return convert<std::uint16_t>(from, to, count);
        case ElementType::UInt32: return convert<std::uint32_t>(from, to, count);
        case ElementType::UInt64: return convert<std::uint64_t>(from, to, count);
        case ElementType::Int8: return convert<std::int8_t>(from, to, count);
        case ElementType::Int16: return convert<std::int16_t>(from, to, count);
        case ElementType::Int32: return convert<std::int32_t>(from, to, count);
        case ElementType::Int64: return convert<std::int64_t>(from, to, count);
        case ElementType::Float16: return convert<Half>(from, to, count);
        case ElementType::Float64: return convert<double>(from, to, count);
        case ElementType::Float32:
            if (count > 0) std::memcpy(to, from, count * sizeof(float));
            return;
    }
}

std::int64_t whole_part(double value) noexcept {
    constexpr double limit = 9223372036854775808.0;
    if (!(value > -limit && value < limit)) return -1;
    return static_cast<std::int64_t>(value);
}

std::int64_t index_at(const void* from, ElementType type, std::size_t index) noexcept {
    switch (type) {
        case ElementType::Bool:
        case ElementType::UInt8: return read<std::uint8_t>(from, index);
        case ElementType::UInt16: return read<std::uint16_t>(from, index);
        case ElementType::UInt32: return read<std::uint32_t>(from, index);
        case ElementType::UInt64: {
            const auto value = read<std::uint64_t>(from, index);
            return value > std::uint64_t{std::numeric_limits<std::int64_t>::max()} ? -1
                                                                                   : static_cast<std::int64_t>(value);
        }
        case ElementType::Int8: return read<std::int8_t>(from, index);
        case ElementType::Int16: return read<std::int16_t>(from, index);
        case ElementType::Int32: return read<std::int32_t>(from, index);
        case ElementType::Int64: return read<std::int64_t>(from, index);
        case ElementType::Float16: return whole_part(real(read<Half>(from, index)));
        case ElementType::Float32: return whole_part(read<float>(from, index));
        case ElementType::Float64: return whole_part(read<double>(from, index));
    }
    return -1;
}

}  // namespace rl4sys::detail
