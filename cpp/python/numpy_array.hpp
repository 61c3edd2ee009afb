/// Reads numpy arrays without numpy's headers, so that one build serves every release of numpy 2.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "rl4sys/arrays.hpp"

namespace rl4sys::python {

namespace nb = nanobind;

/// The first fields of numpy's `PyArrayObject`. Their offsets are compiled into every extension that uses numpy, so
/// they do not change; `require_known_arrays` compares them all the same.
struct ArrayObject {
    PyObject head;
    char* data;
    int axes;
    Py_ssize_t* shape;
    Py_ssize_t* strides;
    PyObject* base;
    PyObject* dtype;
    int flags;
};

/// Whether elements lie one after the other in C order, aligned.
inline bool is_plain(const ArrayObject* array) noexcept {
    constexpr int plain = 0x1 | 0x100;
    return (array->flags & plain) == plain;
}

inline bool is_writeable(const ArrayObject* array) noexcept {
    constexpr int writeable = 0x400;
    return (array->flags & writeable) != 0;
}

/// The array, or null if the object is none, or one of a subclass.
const ArrayObject* as_array(nb::handle object) noexcept;

/// Whether an object is one number of numpy's type float32, as in a list that was made of an array.
bool is_float32(nb::handle object) noexcept;

/// numpy's own object for a type of elements.
PyObject* dtype_of(ElementType type) noexcept;

/// Rows of `row` in an array of a caller in Python, from the first on. @throws ValueError (for Python) unless the array
/// is plain and has the type, the shape after its first axis, and at least so many rows.
char* rows_of(nb::handle object, const ArraySpec& row, std::size_t rows, bool is_output = false);

/// Find numpy's types, and throw unless arrays lie in memory as this module reads them.
void require_known_arrays();

}  // namespace rl4sys::python
