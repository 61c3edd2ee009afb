/// @file
/// How arrays are described: the same names, element types and shapes as on the wire.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rl4sys {

/// The type of one value. The numbers are those of `rl4sys.v1.ElementType`.
enum class ElementType : std::uint8_t {
    Bool = 1,
    UInt8 = 2,
    UInt16 = 3,
    UInt32 = 4,
    UInt64 = 5,
    Int8 = 6,
    Int16 = 7,
    Int32 = 8,
    Int64 = 9,
    Float16 = 10,
    Float32 = 11,
    Float64 = 12,
};

/// How many bytes one value has; 0 for an unknown type.
std::size_t element_size(ElementType type) noexcept;

/// The name in specs, such as "float32"; "unknown" for an unknown type.
std::string_view element_name(ElementType type) noexcept;

/// The type of this name. @throws std::invalid_argument if there is none.
ElementType element_type(std::string_view name);

/// Lengths of the axes, without the leading axis of rows; empty for one value per row.
using Shape = std::vector<std::uint32_t>;

/// The most axes that an array may have.
inline constexpr std::size_t most_axes = 8;
/// The most values that one row of an array may have.
inline constexpr std::uint64_t most_values = std::uint64_t{1} << 31;

/// How many values a shape holds. @throws std::invalid_argument beyond `most_axes` or `most_values`.
std::size_t value_count(const Shape& shape);

/// A shape as text, such as "[4, 84, 84]".
std::string to_string(const Shape& shape);

/// Name, element type and shape of one array, without its leading (time or batch) axis.
struct ArraySpec {
    std::string name;
    ElementType type = ElementType::Float32;
    Shape shape;

    /// How many values one row has.
    std::size_t values() const { return value_count(shape); }
    /// How many bytes one row has.
    std::size_t bytes() const { return values() * element_size(type); }
};

inline bool operator==(const ArraySpec& a, const ArraySpec& b) {
    return a.name == b.name && a.type == b.type && a.shape == b.shape;
}
inline bool operator!=(const ArraySpec& a, const ArraySpec& b) {
    return !(a == b);
}

/// An array as text, such as "queue: float32[8]".
std::string to_string(const ArraySpec& array);

}  // namespace rl4sys
