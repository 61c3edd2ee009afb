/// How the usual observations of a policy are read, and its actions returned.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "numpy_array.hpp"
#include "rl4sys/policy.hpp"

namespace rl4sys::python {

/// The most arrays of an observation that are read here.
inline constexpr std::size_t most_inputs = 8;

/// The parts of an observation in the order of a policy's inputs, kept alive while they are read.
using Parts = std::array<nb::object, most_inputs>;

/// Reads observations that are arrays, lists of numbers or tensors of torch, alone or by name, and refuses all others
/// without an error: Python reads those.
class ActForm {
public:
    /// `inputs`: (name, dtype, shape) of each array that the policy observes. `mask`: the name of the mask among them,
    /// or None. `finish`: turns a recorded action [1, …] into one for the system. `kind` says how to do so without a
    /// call: "choice" adds `start`, "numbers" clips to `low` and `high`, anything else calls `finish`.
    ActForm(nb::list inputs, nb::object mask, nb::object action, const std::string& kind, std::int64_t start,
            std::vector<float> low, std::vector<float> high, nb::object finish);

    std::size_t inputs() const noexcept { return inputs_.size(); }
    const ArraySpec& input(std::size_t index) const { return inputs_[index].row; }
    nb::handle name(std::size_t index) const { return inputs_[index].name; }
    const ArraySpec& action() const noexcept { return action_; }

    /// Find the parts of an observation, with tensors as arrays. May call torch, and so run other threads: what is read
    /// afterwards, with `read`, does not. False if it is not a usual observation.
    bool find(nb::handle observation, nb::handle mask, Parts& parts) const;
    /// Copy the parts to one row of each column. False if one has another shape or type, or is not finite.
    bool read(const Parts& parts, char* const* rows) const noexcept;
    /// The action for the system from what was decided. The caller has changed everything that it wants to change: this
    /// may call Python.
    nb::object finish(const Decision& decision) const;

private:
    enum class Kind { Choice, Numbers, Other };
    struct Input {
        ArraySpec row;
        std::size_t bytes;
        PyObject* name;  ///< Kept by `names_`.
    };

    bool read_mask(nb::handle mask, char* row) const noexcept;

    std::vector<Input> inputs_;
    std::vector<nb::object> names_;
    std::ptrdiff_t mask_ = -1;
    std::size_t seen_ = 0;
    Kind kind_;
    std::int64_t start_;
    std::vector<float> low_, high_;
    nb::object finish_;
    ArraySpec action_;
    nb::object scratch_;  ///< An action [1, …] or [size], copied for each decision.
    nb::object copy_;
    char* scratch_data_;
};

}  // namespace rl4sys::python
