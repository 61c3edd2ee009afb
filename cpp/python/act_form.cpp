#include "act_form.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

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

ArraySpec array_spec(nb::handle raw) {
    return {nb::cast<std::string>(raw[0]), element_type(nb::cast<std::string>(raw[1])), nb::cast<Shape>(raw[2])};
}

}  // namespace

ActForm::ActForm(nb::list inputs, nb::object mask, nb::object action, const std::string& kind, std::int64_t start,
                 std::vector<float> low, std::vector<float> high, nb::object finish)
    : kind_(kind == "choice"    ? Kind::Choice
            : kind == "numbers" ? Kind::Numbers
                                : Kind::Other),
      start_(start),
      low_(std::move(low)),
      high_(std::move(high)),
      finish_(std::move(finish)),
      action_(array_spec(action)) {
    for (const nb::handle raw : inputs) {
        ArraySpec row = array_spec(raw);
        if (!mask.is_none() && row.name == nb::cast<std::string>(mask)) {
            mask_ = static_cast<std::ptrdiff_t>(inputs_.size());
        }
        names_.emplace_back(raw[0]);
        const std::size_t bytes = row.bytes();
        inputs_.push_back({std::move(row), bytes, names_.back().ptr()});
    }
    seen_ = inputs_.size() - (mask_ < 0 ? 0 : 1);
    const std::size_t size = action_.values();
    if (kind_ == Kind::Numbers && (low_.size() != size || high_.size() != size)) {
        throw nb::value_error("Expected a lower and an upper bound for each number of the action.");
    }
    const nb::module_ numpy = nb::module_::import_("numpy");
    nb::list shape;
    if (kind_ != Kind::Numbers) shape.append(1);
    for (const std::uint32_t length : action_.shape) shape.append(length);
    scratch_ = numpy.attr("zeros")(nb::tuple(shape), std::string(element_name(action_.type)));
    copy_ = scratch_.attr("copy");
    scratch_data_ = as_array(scratch_)->data;
}

bool ActForm::read_array(const Input& input, PyObject* value, char* row) const noexcept {
    const ArrayObject* array = as_array(value);
    if (array == nullptr || !is_plain(array) || !has_shape(array, input.row.shape)) return false;
    const std::size_t values = input.bytes / element_size(input.row.type);
    if (array->dtype == dtype_of(input.row.type)) {
        std::memcpy(row, array->data, input.bytes);
    } else if (input.row.type == ElementType::Float32 && array->dtype == dtype_of(ElementType::Float64)) {
        for (std::size_t i = 0; i < values; ++i) {
            double wide;
            std::memcpy(&wide, array->data + i * sizeof(double), sizeof(double));
            const auto narrow = static_cast<float>(wide);
            std::memcpy(row + i * sizeof(float), &narrow, sizeof(float));
        }
    } else {
        return false;
    }
    return is_finite(input.row.type, row, values);
}

bool ActForm::read_mask(nb::handle mask, char* row) const noexcept {
    const Input& input = inputs_[static_cast<std::size_t>(mask_)];
    if (mask.is_none()) {
        std::memset(row, 1, input.bytes);
        return true;
    }
    const ArrayObject* array = as_array(mask);
    if (array == nullptr || !is_plain(array) || array->dtype != dtype_of(ElementType::Bool)) return false;
    if (!has_shape(array, input.row.shape)) return false;
    std::memcpy(row, array->data, input.bytes);
    return true;
}

bool ActForm::read(nb::handle observation, nb::handle mask, char* const* rows) const noexcept {
    if (mask_ < 0 ? !mask.is_none() : !read_mask(mask, rows[mask_])) return false;
    const bool is_named = PyDict_CheckExact(observation.ptr());
    if (is_named ? static_cast<std::size_t>(PyDict_Size(observation.ptr())) != seen_ : seen_ != 1) return false;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
        if (static_cast<std::ptrdiff_t>(i) == mask_) continue;
        PyObject* value = is_named ? PyDict_GetItem(observation.ptr(), inputs_[i].name) : observation.ptr();
        if (value == nullptr || !read_array(inputs_[i], value, rows[i])) return false;
    }
    return true;
}

nb::object ActForm::finish(const Decision& decision) const {
    if (kind_ == Kind::Choice) return nb::steal(PyLong_FromLongLong(decision.choices[0] + start_));
    if (kind_ == Kind::Numbers) {
        auto* numbers = reinterpret_cast<float*>(scratch_data_);
        for (std::size_t i = 0; i < low_.size(); ++i) {
            numbers[i] = std::min(std::max(decision.numbers[i], low_[i]), high_[i]);
        }
        return copy_();
    }
    const void* chosen = decision.choices != nullptr ? static_cast<const void*>(decision.choices) : decision.numbers;
    std::memcpy(scratch_data_, chosen, action_.bytes());
    // A copy: while Python runs, another thread may decide.
    return finish_(copy_());
}

}  // namespace rl4sys::python
