/// @file
/// A policy as data: observations, program, head and actions. docs/policies.md defines it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "rl4sys/arrays.hpp"

namespace rl4sys {

/// A spec that cannot be run, or text that is not a spec. The message says what is wrong and where.
class BadPolicy : public std::invalid_argument {
public:
    using std::invalid_argument::invalid_argument;
};

/// A spec that uses ops which this runtime lacks: upgrade, or decide on the server.
class UnknownOp : public BadPolicy {
public:
    using BadPolicy::BadPolicy;
};

/// A constant of an op or head.
using Setting = std::variant<double, std::int64_t, std::string, bool, std::vector<std::int64_t>, std::vector<double>>;
using Settings = std::map<std::string, Setting>;

/// One of n choices, numbered from `start` for the environment and from 0 inside.
struct DiscreteAction {
    std::int64_t n = 0;
    std::int64_t start = 0;
};

/// Several choices at once.
struct MultiDiscreteAction {
    std::vector<std::int64_t> sizes;
};

/// A vector of real numbers; bounds may be infinite for policies that do not squash.
struct BoxAction {
    std::vector<double> low;
    std::vector<double> high;
};

/// Several choices and several real numbers at once, in one float32 vector: the choices first.
struct MixedAction {
    std::vector<std::int64_t> sizes;
    std::vector<double> low;
    std::vector<double> high;
};

using ActionSpec = std::variant<DiscreteAction, MultiDiscreteAction, BoxAction, MixedAction>;

/// How actions are stored in segments: int64 choices counted from 0, or float32 vectors (also mixed ones).
ArraySpec action_array(const ActionSpec& action);

/// One assignment of a program: `outputs = kind(inputs; tensors)`. Registers are assigned once.
struct Op {
    std::string kind;
    std::vector<std::string> outputs;
    std::vector<std::string> inputs;
    std::vector<std::string> tensors;
    Settings settings;
};

/// A named part of the flat weights. Its offset is the sum of the sizes before it.
struct Tensor {
    std::string name;
    Shape shape;
};

/// One float32 array of policy memory: read from register `name`, written back from register `next`.
struct Memory {
    std::string name;
    Shape shape;
    std::string next;
};

/// How the numbers of a chance register are distributed. The numbers are those of `rl4sys.v1.Distribution`.
enum class Distribution : std::uint8_t {
    /// Standard normal: each takes two uniform numbers.
    Normal = 1,
    /// In [0, 1): each takes one.
    Uniform = 2,
};

/// A register of random numbers that a program reads like an input, drawn for each decision.
struct Chance {
    std::string name;
    std::size_t size = 0;
    Distribution distribution = Distribution::Normal;

    /// How many uniform numbers of a decision's noise it takes.
    std::size_t uniform_numbers() const noexcept { return distribution == Distribution::Normal ? 2 * size : size; }
};

/// Ops over named inputs and tensors.
struct Program {
    std::vector<ArraySpec> inputs;
    std::vector<Op> ops;
    std::vector<Tensor> tensors;
    std::vector<Memory> carry;
    /// Filled from the decision's noise before the first op; the head's own numbers follow theirs.
    std::vector<Chance> chance;

    /// How many uniform numbers of a decision's noise the program takes.
    std::size_t uniform_numbers() const noexcept;
};

/// The kinds of heads. The numbers are those of `rl4sys.v1.HeadKind`.
enum class HeadKind : std::uint8_t {
    Categorical = 1,
    EpsilonGreedy = 2,
    Gaussian = 3,
    TanhGaussian = 4,
    Deterministic = 5,
    Perturbed = 6,
    NoiseConditioned = 7,
    Mixed = 8,
    Planned = 9,
};

/// A head: turns registers into an action.
struct Head {
    HeadKind kind = HeadKind::Deterministic;
    std::vector<std::string> inputs;
    std::vector<std::string> tensors;
    /// The bool observation that marks allowed choices.
    std::optional<std::string> mask;
    Settings settings;

    /// The register that the head assigns for the carry: the setting `next`, if it has one.
    std::optional<std::string> output() const;
    /// The register that takes the action as networks see it: the setting `action`, if it has one.
    std::optional<std::string> action_register() const;
    /// The noise that is drawn before the program runs: settings `noise` (the register) and `size`, if the head has
    /// them.
    std::optional<Chance> chance() const;
};

/// Everything about a policy except its weights. Nothing is checked here: `Policy` refuses a spec that it cannot run.
struct PolicySpec {
    ActionSpec action;
    Program program;
    Head head;
    /// Predicts the environment, for a head that plans. Its tensors are among those of `program`, with equal shapes.
    std::optional<Program> model = std::nullopt;

    /// What the policy records about each decision for the learner: `log_prob`, or nothing.
    std::vector<ArraySpec> noted() const;
    /// Its memory as arrays, in order.
    std::vector<ArraySpec> carry_arrays() const;
};

/// The name in specs, such as "tanh_gaussian".
std::string_view head_name(HeadKind kind) noexcept;

/// Every head of the format. `known_heads()` are those that this runtime has.
const std::vector<HeadKind>& named_heads();

/// The name in specs: "normal" or "uniform".
std::string_view distribution_name(Distribution distribution) noexcept;

/// How many uniform numbers one decision takes: those of the program's chance, then those of the head.
std::size_t noise_size(const PolicySpec& spec) noexcept;

/// Read what Python's `PolicySpec.to_json` wrote. @throws BadPolicy
PolicySpec policy_from_json(std::string_view text);

/// The canonical text: sorted keys, no spaces, whole numbers without a point, infinite bounds as "inf" and "-inf".
/// @throws BadPolicy for settings that JSON cannot hold.
std::string policy_to_json(const PolicySpec& spec);

}  // namespace rl4sys
