#include "tensor.hpp"

#include <utility>

namespace rl4sys::python {
namespace {

namespace nb = nanobind;

// Kept for as long as the process lives, like torch itself.
PyTypeObject* tensor_type = nullptr;
PyTypeObject* other_type = nullptr;

bool is_named_tensor(PyTypeObject* type) noexcept {
    const nb::object name = nb::steal(PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), "__name__"));
    const nb::object module = nb::steal(PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), "__module__"));
    if (!name.is_valid() || !module.is_valid() || !PyUnicode_Check(name.ptr()) || !PyUnicode_Check(module.ptr())) {
        PyErr_Clear();
        return false;
    }
    return PyUnicode_CompareWithASCIIString(name.ptr(), "Tensor") == 0 &&
           PyUnicode_CompareWithASCIIString(module.ptr(), "torch") == 0;
}

}  // namespace

bool is_tensor(nb::handle object) noexcept {
    PyTypeObject* type = Py_TYPE(object.ptr());
    if (type == tensor_type) return true;
    // Arrays and lists come again and again: only another type than the last one is looked at.
    if (tensor_type != nullptr || type == other_type) return false;
    if (!is_named_tensor(type)) {
        other_type = type;
        return false;
    }
    Py_INCREF(reinterpret_cast<PyObject*>(type));
    tensor_type = type;
    return true;
}

bool take_array(nb::object& tensor) {
    static PyObject* const numpy = PyUnicode_InternFromString("numpy");
    static PyObject* const detach = PyUnicode_InternFromString("detach");
    static PyObject* const requires_grad = PyUnicode_InternFromString("requires_grad");
    nb::object plain = tensor;
    const nb::object has_gradient = nb::steal(PyObject_GetAttr(plain.ptr(), requires_grad));
    if (has_gradient.ptr() == Py_True) plain = nb::steal(PyObject_CallMethodObjArgs(plain.ptr(), detach, nullptr));
    if (has_gradient.is_valid() && plain.is_valid()) {
        plain = nb::steal(PyObject_CallMethodObjArgs(plain.ptr(), numpy, nullptr));
    }
    if (PyErr_Occurred() != nullptr) {
        // Python moves it to where it can be read, or says what is wrong.
        PyErr_Clear();
        return false;
    }
    tensor = std::move(plain);
    return true;
}

}  // namespace rl4sys::python
