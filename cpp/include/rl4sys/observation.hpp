/// @file
/// Observations: views of the system's arrays, alone or by name. Nothing is copied or allocated here.
#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <string_view>
#include <type_traits>
#include <vector>

#include "rl4sys/arrays.hpp"

namespace rl4sys {

/// The element type of a C++ number.
template <typename T>
constexpr ElementType element_type_of() {
    static_assert(std::is_arithmetic_v<T>, "Arrays hold numbers.");
    if constexpr (std::is_same_v<T, bool>) {
        return ElementType::Bool;
    } else if constexpr (std::is_floating_point_v<T>) {
        static_assert(sizeof(T) == 4 || sizeof(T) == 8, "Use float or double.");
        return sizeof(T) == 4 ? ElementType::Float32 : ElementType::Float64;
    } else if constexpr (std::is_signed_v<T>) {
        return sizeof(T) == 1   ? ElementType::Int8
               : sizeof(T) == 2 ? ElementType::Int16
               : sizeof(T) == 4 ? ElementType::Int32
                                : ElementType::Int64;
    } else {
        return sizeof(T) == 1   ? ElementType::UInt8
               : sizeof(T) == 2 ? ElementType::UInt16
               : sizeof(T) == 4 ? ElementType::UInt32
                                : ElementType::UInt64;
    }
}

/// A view of numbers in C order; their shape is the one that the policy expects.
class ArrayView {
public:
    /// Nothing: no mask, no observation.
    constexpr ArrayView() = default;
    template <typename T>
    constexpr ArrayView(const T* data, std::size_t size) : data_(data), size_(size), type_(element_type_of<T>()) {}
    /// Numbers whose type is known only at run time.
    constexpr ArrayView(const void* data, std::size_t size, ElementType type) : data_(data), size_(size), type_(type) {}
    template <typename T, std::size_t N>
    constexpr ArrayView(const T (&array)[N]) : ArrayView(array, N) {}
    template <typename T, std::size_t N>
    constexpr ArrayView(const std::array<T, N>& array) : ArrayView(array.data(), N) {}
    template <typename T, typename Allocator>
    ArrayView(const std::vector<T, Allocator>& array) : ArrayView(array.data(), array.size()) {
        static_assert(!std::is_same_v<T, bool>, "std::vector<bool> has no bytes to look at; use std::vector<uint8_t>.");
    }

    constexpr const void* data() const noexcept { return data_; }
    constexpr std::size_t size() const noexcept { return size_; }
    constexpr ElementType type() const noexcept { return type_; }
    /// Whether there is an array at all.
    constexpr bool given() const noexcept { return data_ != nullptr; }

private:
    const void* data_ = nullptr;
    std::size_t size_ = 0;
    ElementType type_ = ElementType::Float32;
};

/// One of several arrays.
struct NamedArray {
    std::string_view name;
    ArrayView array;
};

/// One observation: one array, or several by name. Valid only as long as the arrays it refers to.
class Observation {
public:
    /// No observation.
    constexpr Observation() = default;
    template <typename Array, typename = std::enable_if_t<std::is_constructible_v<ArrayView, const Array&>>>
    constexpr Observation(const Array& array) : only_{{}, array} {}
    template <typename T, typename = std::enable_if_t<std::is_arithmetic_v<T>>>
    constexpr Observation(const T* data, std::size_t size) : only_{{}, {data, size}} {}
    /// `{{"queue", queue}, {"load", load}}`, within a call.
    constexpr Observation(std::initializer_list<NamedArray> arrays) : Observation(arrays.begin(), arrays.size()) {}
    constexpr Observation(const NamedArray* arrays, std::size_t size) : named_(arrays), size_(size) {}

    /// How many arrays there are.
    constexpr std::size_t size() const noexcept { return is_named() ? size_ : given() ? 1 : 0; }
    constexpr const NamedArray& operator[](std::size_t place) const { return is_named() ? named_[place] : only_; }
    constexpr const NamedArray* begin() const noexcept { return is_named() ? named_ : &only_; }
    constexpr const NamedArray* end() const noexcept { return begin() + size(); }
    constexpr bool is_named() const noexcept { return named_ != nullptr; }
    constexpr bool given() const noexcept { return is_named() || only_.array.given(); }

private:
    NamedArray only_;
    const NamedArray* named_ = nullptr;
    std::size_t size_ = 0;
};

}  // namespace rl4sys
