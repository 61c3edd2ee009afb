/// Copies numbers of a program (arrays, or lists and tuples of numbers) as numpy would convert them.
#pragma once

#include "numpy_array.hpp"

namespace rl4sys::python {

/// Copy an array or nested lists of exactly this shape to a row. False, without an error, for everything that numpy has
/// to look at: other shapes, other elements, and values that are not finite in the row. Runs no code of a program.
bool read_numbers(nb::handle value, const ArraySpec& row_spec, char* row) noexcept;

/// Copy whether each number of an array, or of nested lists, is not zero. False as for `read_numbers`.
bool read_truth(nb::handle value, const Shape& shape, char* row) noexcept;

}  // namespace rl4sys::python
