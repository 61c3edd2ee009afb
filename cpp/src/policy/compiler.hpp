/// @file
/// Compiles a program: gives registers and tensors their offsets, and checks both.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "policy/kernels.hpp"
#include "rl4sys/policy.hpp"

namespace rl4sys::detail {

/// The most floats that all registers may have together: 256 MiB.
inline constexpr std::size_t most_register_values = std::size_t{1} << 26;
/// The most floats that a program may carry from one decision to the next: 1 MiB.
inline constexpr std::size_t most_carry_values = std::size_t{1} << 18;
/// The most inputs, ops, tensors, memories or parts of an action.
inline constexpr std::size_t most_parts = std::size_t{1} << 14;
/// The most normal numbers that a program reads in one decision.
inline constexpr std::size_t most_noise = std::size_t{1} << 12;

/// The memory of one decision. Steps know their offsets in it.
struct DecisionFrame {
    const Kernels* kernels;
    const float* weights;
    const void* const* observation;
    float* registers;
    Outcome outcome;
};

/// One op, compiled: for one row, and for several at once where that is faster. Frames of one batch lie side by side
/// and their registers are equally far apart.
class Step {
public:
    using OneRow = std::function<void(DecisionFrame&)>;
    using Rows = std::function<void(DecisionFrame* frames, std::size_t count)>;

    /// Nothing is to be done.
    Step() = default;
    template <typename Function, typename = std::enable_if_t<std::is_invocable_v<Function&, DecisionFrame&>>>
    Step(Function one_row) : one_row_(std::move(one_row)) {}
    Step(OneRow one_row, Rows rows) : one_row_(std::move(one_row)), rows_(std::move(rows)) {}

    explicit operator bool() const noexcept { return static_cast<bool>(one_row_); }
    /// Whether several rows at once are faster.
    bool gains_from_rows() const noexcept { return static_cast<bool>(rows_); }
    void operator()(DecisionFrame& frame) const { one_row_(frame); }
    /// Only for a step that gains from it.
    void operator()(DecisionFrame* frames, std::size_t count) const { rows_(frames, count); }

private:
    OneRow one_row_;
    Rows rows_;
};

/// How far apart the registers of a batch's rows are.
inline std::size_t row_stride(const DecisionFrame* frames, std::size_t count) noexcept {
    return count > 1 ? static_cast<std::size_t>(frames[1].registers - frames[0].registers) : 0;
}

/// Where a decision is written: `choices` or `numbers`, as the action has.
struct Answer {
    std::int64_t* choices;
    float* numbers;
    float log_prob;
};

/// The head, compiled: noise in, answer out.
using Decide = std::function<Outcome(const DecisionFrame&, const float* noise, Answer&)>;

/// Fills a register of random numbers that a program reads: `values` of them, from uniform number `first` on.
struct FillNoise {
    std::size_t at, values, first;
    Distribution distribution;
    /// Of normal numbers.
    float deviation;

    void operator()(float* registers, const float* noise) const noexcept;
};

/// A register of the program.
struct Register {
    Shape shape;
    std::size_t values = 0;
    /// Its offset among the registers, in floats.
    std::size_t at = 0;
    ElementType type = ElementType::Float32;
    /// Which input it is, if its values can be read unconverted.
    std::optional<std::size_t> input;
};

/// Gives registers their offsets, and refuses invalid programs.
class Compiler {
public:
    Compiler(const PolicySpec& spec, const Layout& layout);

    const PolicySpec& spec() const noexcept { return spec_; }
    std::size_t register_values() const noexcept { return end_; }
    /// Which inputs some op reads as float32.
    const std::vector<bool>& read_as_floats() const noexcept { return read_as_floats_; }

    /// An existing register, to be read unconverted.
    const Register& find(const std::string& name, const std::string& reader) const;
    /// An existing register, to be read as float32.
    const Register& floats(const std::string& name, const std::string& reader);
    /// Gives a new register its offset. @throws BadPolicy if the name is taken.
    const Register& assign(const std::string& name, Shape shape);
    /// Another name for a register, with another shape of the same size.
    void alias(const std::string& name, const Register& original, Shape shape);
    /// Memory that only one step uses; returns its offset.
    std::size_t scratch(std::size_t values);
    /// The offset of a tensor, which must have this shape.
    std::size_t tensor(const std::string& name, const Shape& shape, const std::string& reader) const;
    /// The shape of a tensor.
    const Shape& tensor_shape(const std::string& name, const std::string& reader) const;

private:
    void insert(const std::string& name, Register value);

    const PolicySpec& spec_;
    const Layout& layout_;
    std::map<std::string, Register> registers_;
    std::vector<bool> read_as_floats_;
    std::size_t end_ = 0;
};

/// Throws `BadPolicy` with the name of the part at fault.
[[noreturn]] void refuse(const std::string& who, const std::string& problem);

/// A setting that must be a finite number.
double number(const Settings& settings, const std::string& name, const std::string& owner);

/// How many of `most` rows are candidates: row i exists if i < count.
std::size_t real_rows(float count, std::size_t most) noexcept;

/// Compiles one op and gives its outputs their offsets; `who` names it in errors.
Step compile_op(Compiler& compiler, const Op& op, const std::string& who);

/// Gives the registers of random numbers their offsets: those of the program, then that of a head that has one.
std::vector<FillNoise> compile_chance(Compiler& compiler);

/// The head, writing its action into the register that its setting `action` names, if it has one.
Decide remember_action(Compiler& compiler, Decide decide);

/// Compiles the head over registers that have their offsets.
Decide compile_head(Compiler& compiler);

}  // namespace rl4sys::detail
