/// @file
/// What compiling a program needs: registers with their places, tensors with theirs, and the checks of both.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "policy/kernels.hpp"
#include "rl4sys/policy.hpp"

namespace rl4sys::detail {

/// The most floats that all registers may have together: 256 MiB.
inline constexpr std::size_t most_register_values = std::size_t{1} << 26;
/// The most inputs, ops, tensors, memories or parts of an action.
inline constexpr std::size_t most_parts = std::size_t{1} << 14;
/// The most normal numbers that a program reads in one decision.
inline constexpr std::size_t most_noise = std::size_t{1} << 12;

/// What one decision works on. Steps know their places in it.
struct DecisionFrame {
    const Kernels* kernels;
    const float* weights;
    const void* const* observation;
    float* registers;
    Outcome outcome;
};

/// One op, compiled.
using Step = std::function<void(DecisionFrame&)>;

/// Where a decision goes: `choices` or `numbers`, whichever the action has.
struct Answer {
    std::int64_t* choices;
    float* numbers;
    float log_prob;
};

/// The head, compiled: noise in, answer out.
using Decide = std::function<Outcome(const DecisionFrame&, const float* noise, Answer&)>;

/// Where a program finds normal numbers: as many as `values`, with this deviation.
struct FillNoise {
    std::size_t at, values;
    float deviation;

    void operator()(float* registers, const float* noise) const noexcept;
};

/// A value of the program.
struct Register {
    Shape shape;
    std::size_t values = 0;
    /// Its place among the registers, as float32.
    std::size_t at = 0;
    ElementType type = ElementType::Float32;
    /// Which input it is, if its values can be read as they came.
    std::optional<std::size_t> input;
};

/// Gives places to the registers of a program, and refuses what does not fit.
class Compiler {
public:
    Compiler(const PolicySpec& spec, const Layout& layout);

    const PolicySpec& spec() const noexcept { return spec_; }
    std::size_t register_values() const noexcept { return end_; }
    /// Which inputs some op reads as float32.
    const std::vector<bool>& read_as_floats() const noexcept { return read_as_floats_; }

    /// A register that exists, for whoever reads it as it came.
    const Register& find(const std::string& name, const std::string& reader) const;
    /// A register that exists, for whoever reads it as float32.
    const Register& floats(const std::string& name, const std::string& reader);
    /// Gives a new register its place. @throws BadPolicy if the name is taken.
    const Register& assign(const std::string& name, Shape shape);
    /// Another name for a register, with another shape of as many values.
    void alias(const std::string& name, const Register& original, Shape shape);
    /// A place for values that only one step knows.
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

/// A refusal that names who is at fault.
[[noreturn]] void refuse(const std::string& who, const std::string& problem);

/// A setting that must be a finite number.
double number(const Settings& settings, const std::string& name, const std::string& owner);

/// Compiles one op and gives its outputs their places; `who` names it in errors.
Step compile_op(Compiler& compiler, const Op& op, const std::string& who);

/// Gives the register of normal numbers its place, for a head that has one; fills it from noise.
std::optional<FillNoise> compile_chance(Compiler& compiler);

/// Compiles the head over registers that have their places.
Decide compile_head(Compiler& compiler);

}  // namespace rl4sys::detail
