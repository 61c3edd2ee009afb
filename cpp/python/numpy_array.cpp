#include "numpy_array.hpp"

#include <nanobind/stl/string.h>

#include <array>
#include <stdexcept>

namespace rl4sys::python {
namespace {

constexpr std::size_t types = 13;

// Kept for as long as the process lives, like numpy itself.
PyTypeObject* array_type = nullptr;
PyTypeObject* float32_type = nullptr;
std::array<PyObject*, types> dtypes{};

/// numpy has one object for each native type, and equal others, as from a file.
bool has_type(const ArrayObject* array, ElementType type) {
    if (array->dtype == dtype_of(type)) return true;
    return PyObject_RichCompareBool(array->dtype, dtype_of(type), Py_EQ) == 1;
}

}  // namespace

const ArrayObject* as_array(nb::handle object) noexcept {
    return Py_TYPE(object.ptr()) == array_type ? reinterpret_cast<const ArrayObject*>(object.ptr()) : nullptr;
}

bool is_float32(nb::handle object) noexcept {
    return Py_TYPE(object.ptr()) == float32_type;
}

PyObject* dtype_of(ElementType type) noexcept {
    return dtypes[static_cast<std::size_t>(type)];
}

char* rows_of(nb::handle object, const ArraySpec& row, std::size_t rows, bool is_output) {
    const ArrayObject* array = as_array(object);
    bool fits = array != nullptr && is_plain(array) && has_type(array, row.type) &&
                array->axes == static_cast<int>(row.shape.size()) + 1 &&
                static_cast<std::size_t>(array->shape[0]) >= rows && (!is_output || is_writeable(array));
    for (std::size_t axis = 0; fits && axis < row.shape.size(); ++axis) {
        fits = array->shape[axis + 1] == static_cast<Py_ssize_t>(row.shape[axis]);
    }
    if (!fits) {
        throw nb::value_error(("Expected a contiguous array with " + std::to_string(rows) + " rows of " +
                               to_string(row) + (is_output ? ", to write into." : "."))
                                  .c_str());
    }
    return array->data;
}

void require_known_arrays() {
    const nb::module_ numpy = nb::module_::import_("numpy");
    array_type = reinterpret_cast<PyTypeObject*>(nb::object(numpy.attr("ndarray")).release().ptr());
    float32_type = reinterpret_cast<PyTypeObject*>(nb::object(numpy.attr("float32")).release().ptr());
    for (std::size_t type = 1; type < types; ++type) {
        const std::string name(element_name(static_cast<ElementType>(type)));
        dtypes[type] = nb::object(numpy.attr("dtype")(name)).release().ptr();
    }
    const nb::object known = numpy.attr("zeros")(nb::make_tuple(3, 5), "float32");
    const ArrayObject* array = as_array(known);
    const auto address = nb::cast<std::uintptr_t>(known.attr("ctypes").attr("data"));
    const bool is_known = array != nullptr && reinterpret_cast<std::uintptr_t>(array->data) == address &&
                          array->axes == 2 && array->shape[0] == 3 && array->shape[1] == 5 && array->strides[0] == 20 &&
                          array->dtype == dtype_of(ElementType::Float32) && is_plain(array) && is_writeable(array);
    if (!is_known) {
        throw std::runtime_error("arrays of this numpy lie otherwise in memory than rl4sys-native was built for");
    }
}

}  // namespace rl4sys::python
