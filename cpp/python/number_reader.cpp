#include "number_reader.hpp"

#include <cstring>

namespace rl4sys::python {
namespace {

template <typename Number>
bool all_finite_of(const char* data, std::size_t values) noexcept {
    // A sum of products with zero is zero unless a value is NaN or infinite: no branches.
    Number sum = 0;
    for (std::size_t i = 0; i < values; ++i) {
        Number value;
        std::memcpy(&value, data + i * sizeof(Number), sizeof(Number));
        sum += value * Number{0};
    }
    return sum == Number{0};
}

bool half_is_finite(const char* data, std::size_t values) noexcept {
    constexpr std::uint16_t exponent = 0x7C00;
    for (std::size_t i = 0; i < values; ++i) {
        std::uint16_t bits;
        std::memcpy(&bits, data + i * sizeof(bits), sizeof(bits));
        if ((bits & exponent) == exponent) return false;
    }
    return true;
}

bool is_finite(ElementType type, const char* data, std::size_t values) noexcept {
    switch (type) {
        case ElementType::Float16: return half_is_finite(data, values);
        case ElementType::Float32: return all_finite_of<float>(data, values);
        case ElementType::Float64: return all_finite_of<double>(data, values);
        default: return true;
    }
}

bool has_shape(const ArrayObject* array, const Shape& shape) noexcept {
    if (array->axes != static_cast<int>(shape.size())) return false;
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
        if (array->shape[axis] != static_cast<Py_ssize_t>(shape[axis])) return false;
    }
    return true;
}

std::size_t count_of(const Shape& shape) noexcept {
    std::size_t values = 1;
    for (const std::uint32_t length : shape) values *= length;
    return values;
}

/// Each element of `From` as one of `To`, as a cast of C does it.
template <typename From, typename To>
void cast_values(const char* from, std::size_t values, char* to) noexcept {
    for (std::size_t i = 0; i < values; ++i) {
        From value;
        std::memcpy(&value, from + i * sizeof(From), sizeof(From));
        const auto cast = static_cast<To>(value);
        std::memcpy(to + i * sizeof(To), &cast, sizeof(To));
    }
}

template <typename From>
void not_zero(const char* from, std::size_t values, char* to) noexcept {
    for (std::size_t i = 0; i < values; ++i) {
        From value;
        std::memcpy(&value, from + i * sizeof(From), sizeof(From));
        to[i] = value != From{0} ? 1 : 0;
    }
}

/// Arrays of another type than the row; only those that systems have: numpy converts the others.
bool cast_array(const ArrayObject* array, ElementType to, std::size_t values, char* row) noexcept {
    if (to != ElementType::Float32) return false;
    if (array->dtype == dtype_of(ElementType::Float64)) {
        cast_values<double, float>(array->data, values, row);
    } else if (array->dtype == dtype_of(ElementType::Int64)) {
        cast_values<std::int64_t, float>(array->data, values, row);
    } else if (array->dtype == dtype_of(ElementType::Int32)) {
        cast_values<std::int32_t, float>(array->data, values, row);
    } else if (array->dtype == dtype_of(ElementType::UInt8)) {
        cast_values<std::uint8_t, float>(array->data, values, row);
    } else {
        return false;
    }
    return true;
}

/// One number of a list. Larger whole numbers than these are not always doubles, so that numpy may round them
/// otherwise.
bool number_of(PyObject* value, double& number) noexcept {
    constexpr long long largest = 1LL << 53;
    if (PyFloat_Check(value) || is_float32(value)) {
        number = PyFloat_AsDouble(value);
        return true;
    }
    if (PyBool_Check(value)) {
        number = value == Py_True ? 1.0 : 0.0;
        return true;
    }
    if (!PyLong_CheckExact(value)) return false;
    int overflow = 0;
    const long long whole = PyLong_AsLongLongAndOverflow(value, &overflow);
    number = static_cast<double>(whole);
    return overflow == 0 && whole <= largest && whole >= -largest;
}

/// Visit the numbers of nested lists and tuples of this shape, in order; false where there is something else.
template <typename Visit>
bool visit_numbers(PyObject* value, const Shape& shape, std::size_t axis, const Visit& visit) noexcept {
    if (axis == shape.size()) {
        double number;
        if (!number_of(value, number)) return false;
        visit(number);
        return true;
    }
    const bool is_list = PyList_CheckExact(value);
    if (!is_list && !PyTuple_CheckExact(value)) return false;
    const Py_ssize_t length = is_list ? PyList_Size(value) : PyTuple_Size(value);
    if (length != static_cast<Py_ssize_t>(shape[axis])) return false;
    for (Py_ssize_t i = 0; i < length; ++i) {
        PyObject* part = is_list ? PyList_GetItem(value, i) : PyTuple_GetItem(value, i);
        if (!visit_numbers(part, shape, axis + 1, visit)) return false;
    }
    return true;
}

template <typename Number>
bool read_list(PyObject* value, const Shape& shape, char* row) noexcept {
    return visit_numbers(value, shape, 0, [&row](double number) {
        const auto cast = static_cast<Number>(number);
        std::memcpy(row, &cast, sizeof(Number));
        row += sizeof(Number);
    });
}

}  // namespace

bool read_numbers(nb::handle value, const ArraySpec& spec, char* row) noexcept {
    const std::size_t values = count_of(spec.shape);
    if (const ArrayObject* array = as_array(value)) {
        if (!is_plain(array) || !has_shape(array, spec.shape)) return false;
        if (array->dtype == dtype_of(spec.type)) {
            std::memcpy(row, array->data, values * element_size(spec.type));
        } else if (!cast_array(array, spec.type, values, row)) {
            return false;
        }
    } else if (spec.type == ElementType::Float32) {
        if (!read_list<float>(value.ptr(), spec.shape, row)) return false;
    } else if (spec.type == ElementType::Float64) {
        if (!read_list<double>(value.ptr(), spec.shape, row)) return false;
    } else {
        return false;
    }
    return is_finite(spec.type, row, values);
}

bool read_truth(nb::handle value, const Shape& shape, char* row) noexcept {
    const ArrayObject* array = as_array(value);
    if (array == nullptr) {
        return visit_numbers(value.ptr(), shape, 0, [&row](double number) { *row++ = number != 0.0 ? 1 : 0; });
    }
    if (!is_plain(array) || !has_shape(array, shape)) return false;
    const std::size_t values = count_of(shape);
    if (array->dtype == dtype_of(ElementType::Bool)) {
        std::memcpy(row, array->data, values);
    } else if (array->dtype == dtype_of(ElementType::Float32)) {
        not_zero<float>(array->data, values, row);
    } else if (array->dtype == dtype_of(ElementType::Float64)) {
        not_zero<double>(array->data, values, row);
    } else if (array->dtype == dtype_of(ElementType::Int64)) {
        not_zero<std::int64_t>(array->data, values, row);
    } else if (array->dtype == dtype_of(ElementType::UInt8) || array->dtype == dtype_of(ElementType::Int8)) {
        not_zero<std::uint8_t>(array->data, values, row);
    } else {
        return false;
    }
    return true;
}

}  // namespace rl4sys::python
