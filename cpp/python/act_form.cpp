#include "act_form.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "number_reader.hpp"
#include "tensor.hpp"

namespace rl4sys::python {
namespace {

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

bool ActForm::find(nb::handle observation, nb::handle mask, Parts& parts) const {
    if (inputs_.size() > most_inputs || (mask_ < 0 && !mask.is_none())) return false;
    const bool is_named = PyDict_CheckExact(observation.ptr());
    if (is_named ? static_cast<std::size_t>(PyDict_Size(observation.ptr())) != seen_ : seen_ != 1) return false;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
        nb::handle part = observation;
        if (static_cast<std::ptrdiff_t>(i) == mask_) {
            part = mask;
        } else if (is_named) {
            part = PyDict_GetItem(observation.ptr(), inputs_[i].name);
            if (!part.is_valid()) return false;
        }
        parts[i] = nb::borrow(part);
    }
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
        if (is_tensor(parts[i]) && !take_array(parts[i])) return false;
    }
    return true;
}

bool ActForm::read_mask(nb::handle mask, char* row) const noexcept {
    const Input& input = inputs_[static_cast<std::size_t>(mask_)];
    if (!mask.is_none()) return read_truth(mask, input.row.shape, row);
    std::memset(row, 1, input.bytes);
    return true;
}

bool ActForm::read(const Parts& parts, char* const* rows) const noexcept {
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
        const bool is_mask = static_cast<std::ptrdiff_t>(i) == mask_;
        if (!(is_mask ? read_mask(parts[i], rows[i]) : read_numbers(parts[i], inputs_[i].row, rows[i]))) return false;
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
