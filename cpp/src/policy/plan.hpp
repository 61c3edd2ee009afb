/// @file
/// A policy compiled: buffers allocated once, steps in order.
#pragma once

#include <vector>

#include "policy/compiler.hpp"
#include "policy/registers.hpp"

namespace rl4sys::detail {

/// The implementation of `Policy`, with the kernels as an argument so that tests can compare them.
class Plan {
public:
    Plan(PolicySpec spec, SharedWeights weights, const Kernels& kernels);
    // Steps refer to the spec of this very object.
    Plan(const Plan&) = delete;
    Plan& operator=(const Plan&) = delete;

    const PolicySpec& spec() const noexcept { return spec_; }
    const SharedWeights& weights() const noexcept { return weights_; }
    std::size_t weight_count() const noexcept { return layout_.size(); }
    std::size_t action_size() const noexcept { return action_size_; }
    std::size_t carry_size() const noexcept { return next_carry_.size(); }

    void load(SharedWeights weights);
    const char* kernel_set() const noexcept { return kernels_.name; }
    Decision decide(const void* const* observation, const float* noise, const float* carry) noexcept;
    Decisions decide_rows(std::size_t rows, const void* const* observation, const float* noise, const float* carry);

private:
    /// An input that ops read as float32.
    struct Conversion {
        std::size_t input, values, at;
        ElementType type;
    };
    /// A memory: its register, and the register whose value it takes.
    struct Recall {
        std::size_t values, at, next;
    };

    /// What rows that are decided together need; allocated for as many as there ever were.
    struct Batch {
        Registers registers;
        std::vector<const void*> observation;
        std::vector<DecisionFrame> frames;
        std::vector<Outcome> outcomes;
        std::vector<std::int64_t> choices;
        std::vector<float> numbers, log_probs, carry;
    };

    void compile();
    std::size_t rows_at_once() const noexcept;
    /// Makes the batch large enough for `rows` rows.
    void reserve(std::size_t rows);
    /// Decides `count` rows from row `first` on, together.
    void decide_part(std::size_t first, std::size_t count, const void* const* observation, const float* noise,
                     const float* carry);
    /// The first step from `step` on that several rows take together; as many as there are steps if none does.
    std::size_t next_shared_step(std::size_t step) const noexcept;
    /// Runs the steps of one row from step `first` on, up to the next that several rows take together.
    void run_row(DecisionFrame& frame, std::size_t first) const noexcept;
    /// Fills the registers that the steps read.
    void begin(DecisionFrame& frame, const float* noise, const float* carry) const noexcept;
    /// Runs the head; `carry` is where the memory goes, if there was a decision.
    Outcome conclude(const DecisionFrame& frame, const float* noise, Answer& answer, float* carry) const noexcept;
    const float* first_weight() const noexcept;

    PolicySpec spec_;
    Layout layout_;
    const Kernels& kernels_;
    SharedWeights weights_;
    std::size_t action_size_ = 0;
    std::vector<Conversion> conversions_;
    std::vector<Recall> memories_;
    std::vector<FillNoise> chance_;
    /// How many uniform numbers the program takes before the head.
    std::size_t drawn_ = 0;
    std::vector<Step> steps_;
    Decide head_;
    std::size_t register_values_ = 0;
    Registers registers_;
    std::vector<float> next_carry_;
    std::vector<std::int64_t> choices_;
    std::vector<float> numbers_;
    Batch batch_;
};

}  // namespace rl4sys::detail
