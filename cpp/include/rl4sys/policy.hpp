/// @file
/// Runs a policy program: the same decisions as numpy and torch, without either.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rl4sys/noise.hpp"
#include "rl4sys/policy_spec.hpp"
#include "rl4sys/weights.hpp"

namespace rl4sys {

namespace detail {
class Plan;
}

/// The outcome of a decision. There is an action only for `Decided`.
enum class Outcome : std::uint8_t {
    Decided = 0,
    /// The action mask forbids every choice of a group.
    NothingAllowed = 1,
    /// The scores or the action are NaN or infinite: so were the observation or the weights.
    NotFinite = 2,
    /// An observation that an `embed` op reads is not a row of its table.
    IndexOutOfRange = 3,
};

/// The message for an outcome.
const char* describe(Outcome outcome) noexcept;

/// What a policy chose for one row. The pointers belong to the policy and are valid until its next decision.
struct Decision {
    Outcome outcome = Outcome::Decided;
    /// `Policy::action_size()` choices counted from 0; null for box and mixed actions.
    const std::int64_t* choices = nullptr;
    /// `Policy::action_size()` numbers; null for discrete actions. Not clipped to the bounds. Those of a mixed action
    /// begin with its choices.
    const float* numbers = nullptr;
    /// Meaningful if `PolicySpec::noted()` has it, else 0.
    float log_prob = 0.0F;
    /// The memory afterwards, `Policy::carry_size()` values; null for a policy without memory.
    const float* carry = nullptr;
};

/// What a policy chose for several rows. The pointers belong to the policy and are valid until its next `decide_rows`.
struct Decisions {
    std::size_t rows = 0;
    /// One for each row; a row that is not `Decided` has no action, and the other rows are not affected.
    const Outcome* outcomes = nullptr;
    /// `Policy::action_size()` choices for each row; null for box and mixed actions.
    const std::int64_t* choices = nullptr;
    /// `Policy::action_size()` numbers for each row; null for discrete actions.
    const float* numbers = nullptr;
    /// One for each row.
    const float* log_probs = nullptr;
    /// `Policy::carry_size()` values for each row; null for a policy without memory.
    const float* carry = nullptr;
};

/// Which instructions policies compute with on this machine unless another set is asked for: "generic", "avx2" or
/// "avx512" on x86-64, "neon" on 64-bit ARM. The same set gives the same bits everywhere; another may differ in the
/// last.
const char* kernel_set() noexcept;

/// The kernel sets that this machine can run, the fastest first.
std::vector<std::string> kernel_sets();

/// The ops that this runtime has, by name; a client lists them when it joins.
const std::vector<std::string>& known_ops();

/// The heads that this runtime has; a client lists them when it joins.
const std::vector<HeadKind>& known_heads();

/// A policy that acts for one row at a time, or for several. It is not thread-safe: give each thread its own.
///
/// The constructor checks the whole spec, so that a decision needs no checks and allocates nothing.
class Policy {
public:
    /// @throws BadPolicy if the spec cannot be run, UnknownOp if it needs another runtime,
    ///         LayoutMismatch if there are more or fewer weights than it needs.
    Policy(PolicySpec spec, SharedWeights weights);
    /// The same with the kernel set of this name, such as the one that a recorded run used.
    /// @throws std::invalid_argument also if this machine lacks the kernel set.
    Policy(PolicySpec spec, SharedWeights weights, const std::string& kernel_set);
    Policy(Policy&&) noexcept;
    Policy& operator=(Policy&&) noexcept;
    ~Policy();

    const PolicySpec& spec() const noexcept;
    /// How many weights the policy has.
    std::size_t weight_count() const noexcept;
    /// How many uniform numbers one decision takes.
    std::size_t noise_size() const noexcept;
    /// How many choices or numbers one action has.
    std::size_t action_size() const noexcept;
    /// How many floats its memory has: all arrays of the carry, one after the other.
    std::size_t carry_size() const noexcept;

    /// Use these weights from the next decision on: a pointer is swapped, nothing is copied.
    /// @throws LayoutMismatch if there are more or fewer than the policy has.
    void load(SharedWeights weights);
    const SharedWeights& weights() const noexcept;
    /// The name of the kernel set that this policy computes with.
    const char* kernel_set() const noexcept;

    /// Choose an action for one row. Never allocates or blocks.
    /// @param observation one pointer for each of `spec().program.inputs`, to one row as on the wire: values of the
    ///        stated type in C order, without regard to alignment.
    /// @param noise `noise_size()` uniform numbers; may be null if that is 0.
    /// @param carry `carry_size()` values; null at the start of an episode. May be what
    ///        the last decision returned.
    Decision decide(const void* const* observation, const float* noise, const float* carry = nullptr) noexcept;

    /// Choose actions for several rows: faster than one by one where layers are wide, and with the same bits as
    /// `decide`. Allocates only when there are more rows than ever before.
    /// @param observation one pointer for each of `spec().program.inputs`, to `rows` rows one after the other.
    /// @param noise `noise_size()` uniform numbers for each row; may be null if that is 0.
    /// @param carry `carry_size()` values for each row, zeros for one that starts an episode; null if all do. May be
    /// what
    ///        the last call with as many rows returned.
    Decisions decide_rows(std::size_t rows, const void* const* observation, const float* noise,
                          const float* carry = nullptr);

private:
    std::unique_ptr<detail::Plan> plan_;
};

}  // namespace rl4sys
