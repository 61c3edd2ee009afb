/// @file
/// A policy compiled for one row: buffers allocated once, steps in order.
#pragma once

#include <vector>

#include "policy/compiler.hpp"

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
    Decision decide(const void* const* observation, const float* noise, const float* carry) noexcept;

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

    void compile();

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
    std::vector<float> registers_;
    std::vector<float> next_carry_;
    std::vector<std::int64_t> choices_;
    std::vector<float> numbers_;
};

}  // namespace rl4sys::detail
