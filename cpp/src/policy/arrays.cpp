#include "rl4sys/arrays.hpp"

#include <array>
#include <stdexcept>

namespace rl4sys {
namespace {

struct Element {
    std::string_view name;
    std::size_t size;
};

/// By number; number 0 is unused.
constexpr std::array<Element, 13> elements{{{"unknown", 0},
                                            {"bool", 1},
                                            {"uint8", 1},
                                            {"uint16", 2},
                                            {"uint32", 4},
                                            {"uint64", 8},
                                            {"int8", 1},
                                            {"int16", 2},
                                            {"int32", 4},
                                            {"int64", 8},
                                            {"float16", 2},
                                            {"float32", 4},
                                            {"float64", 8}}};

const Element& element(ElementType type) noexcept {
    const auto number = static_cast<std::size_t>(type);
    return elements[number < elements.size() ? number : 0];
}

}  // namespace

std::size_t element_size(ElementType type) noexcept {
    return element(type).size;
}

std::string_view element_name(ElementType type) noexcept {
    return element(type).name;
}

ElementType element_type(std::string_view name) {
    for (std::size_t number = 1; number < elements.size(); ++number) {
        if (elements[number].name == name) return static_cast<ElementType>(number);
    }
    throw std::invalid_argument("There is no element type '" + std::string(name.substr(0, 32)) +
                                "'; use one such as float32, int64, uint8 or bool.");
}

std::size_t value_count(const Shape& shape) {
    if (shape.size() > most_axes) {
        throw std::invalid_argument("A shape has " + std::to_string(shape.size()) + " axes; at most " +
                                    std::to_string(most_axes) + " are allowed.");
    }
    // The greatest length of an axis is below 2^32 and the product so far at most 2^31, so nothing overflows; a zero
    // anywhere makes the shape empty, however long its other axes are.
    std::uint64_t count = 1;
    for (const std::uint32_t length : shape) {
        if (length == 0) return 0;
    }
    for (const std::uint32_t length : shape) {
        count *= length;
        if (count > most_values) {
            throw std::invalid_argument("The shape " + to_string(shape) + " has more than " +
                                        std::to_string(most_values) + " values.");
        }
    }
    return static_cast<std::size_t>(count);
}

std::string to_string(const Shape& shape) {
    std::string text = "[";
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
        if (axis > 0) text += ", ";
        text += std::to_string(shape[axis]);
    }
    return text + "]";
}

std::string to_string(const ArraySpec& array) {
    return array.name + ": " + std::string(element_name(array.type)) + to_string(array.shape);
}

}  // namespace rl4sys
