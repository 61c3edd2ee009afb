#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "policy/kernel_sets.hpp"
#include "policy/plan.hpp"
#include "programs.hpp"

namespace rl4sys {
namespace {

/// scores pass through `scale` to a head over three choices, with a mask beside them.
PolicySpec masked(HeadKind kind) {
    PolicySpec spec;
    spec.action = DiscreteAction{3, 0};
    spec.program.inputs = {{"scores", ElementType::Float32, {3}}, {"action_mask", ElementType::Bool, {3}}};
    spec.head.kind = kind;
    spec.head.inputs = {"scores"};
    spec.head.mask = "action_mask";
    return spec;
}

Policy without_weights(PolicySpec spec) {
    return {std::move(spec), std::make_shared<const Weights>()};
}

Decision decide(Policy& policy, std::array<float, 3> scores, std::array<std::uint8_t, 3> mask, float u = 0.5F) {
    const void* observation[] = {scores.data(), mask.data()};
    return policy.decide(observation, &u);
}

TEST(Decisions, AMaskWithoutAChoiceIsReported) {
    for (const HeadKind kind : {HeadKind::Categorical, HeadKind::Deterministic}) {
        Policy policy = without_weights(masked(kind));
        EXPECT_EQ(decide(policy, {1, 2, 3}, {0, 0, 0}).outcome, Outcome::NothingAllowed);
        EXPECT_EQ(decide(policy, {1, 2, 3}, {0, 1, 0}).choices[0], 1);
    }
}

TEST(Decisions, ScoresThatAreNaNAreReported) {
    for (const HeadKind kind : {HeadKind::Categorical, HeadKind::Deterministic}) {
        Policy policy = without_weights(masked(kind));
        for (std::size_t place = 0; place < 3; ++place) {
            std::array<float, 3> scores{1, 2, 3};
            scores[place] = NAN;
            EXPECT_EQ(decide(policy, scores, {1, 1, 1}).outcome, Outcome::NotFinite);
        }
        EXPECT_EQ(decide(policy, {NAN, 2, 3}, {0, 1, 1}).outcome, Outcome::Decided) << "forbidden scores do not count";
    }
}

TEST(Decisions, ForbiddenChoicesAreNeverChosen) {
    Policy policy = without_weights(masked(HeadKind::Categorical));
    for (const float u : {0.0F, 0.25F, 0.5F, 1.0F - 0x1p-24F}) {
        EXPECT_EQ(decide(policy, {50, 0, 50}, {0, 1, 0}, u).choices[0], 1);
        EXPECT_EQ(decide(policy, {50, 0, 50}, {0, 1, 0}, u).log_prob, 0.0F);
    }
}

TEST(Decisions, NewWeightsAreUsedFromTheNextDecision) {
    PolicySpec spec = dense_policy(2, {}, 2);
    spec.head.kind = HeadKind::Deterministic;
    Policy policy(spec, std::make_shared<const Weights>(Weights{0, 0, 0, 0, 1, 0}));
    const float x[] = {0, 0};
    const void* observation[] = {x};
    EXPECT_EQ(policy.decide(observation, nullptr).choices[0], 0);
    policy.load(std::make_shared<const Weights>(Weights{0, 0, 0, 0, 0, 1}));
    EXPECT_EQ(policy.decide(observation, nullptr).choices[0], 1);
    EXPECT_THROW(policy.load(std::make_shared<const Weights>(5)), LayoutMismatch);
    EXPECT_THROW(policy.load(nullptr), LayoutMismatch);
}

TEST(Decisions, ObservationsNeedNoAlignment) {
    Policy policy(dense_policy(3, {5}, 4), wavy_weights(dense_policy(3, {5}, 4)));
    const float x[] = {0.5F, -1.0F, 2.0F};
    char shifted[sizeof(x) + 1];
    std::memcpy(shifted + 1, x, sizeof(x));
    const void *straight[] = {x}, *odd[] = {shifted + 1};
    const float u = 0.75F;
    const Decision first = policy.decide(straight, &u);
    const std::int64_t choice = first.choices[0];
    const Decision second = policy.decide(odd, &u);
    EXPECT_EQ(choice, second.choices[0]);
    EXPECT_EQ(first.log_prob, second.log_prob);
}

/// A table of two rows, read by an index of this type.
PolicySpec lookup(ElementType type) {
    PolicySpec spec;
    spec.action = BoxAction{{-INFINITY}, {INFINITY}};
    spec.program.inputs = {{"index", type, {}}};
    spec.program.tensors = {{"table", {2, 1}}};
    spec.program.ops = {{"embed", {"row"}, {"index"}, {"table"}, {}}};
    spec.head.inputs = {"row"};
    return spec;
}

template <typename Index>
Decision look_up(ElementType type, Index index) {
    Policy policy(lookup(type), std::make_shared<const Weights>(Weights{10, 20}));
    const void* observation[] = {&index};
    Decision decision = policy.decide(observation, nullptr);
    if (decision.outcome == Outcome::Decided) decision.log_prob = decision.numbers[0];
    decision.numbers = nullptr;
    return decision;
}

TEST(Decisions, AnIndexBeyondItsTableIsReported) {
    EXPECT_EQ(look_up(ElementType::Int64, std::int64_t{1}).log_prob, 20.0F);
    EXPECT_EQ(look_up(ElementType::UInt8, std::uint8_t{0}).log_prob, 10.0F);
    EXPECT_EQ(look_up(ElementType::Float32, 1.9F).log_prob, 20.0F);
    for (const std::int64_t index : {std::int64_t{2}, std::int64_t{-1}, std::numeric_limits<std::int64_t>::min()}) {
        EXPECT_EQ(look_up(ElementType::Int64, index).outcome, Outcome::IndexOutOfRange);
    }
    EXPECT_EQ(look_up(ElementType::UInt64, ~std::uint64_t{0}).outcome, Outcome::IndexOutOfRange);
    EXPECT_EQ(look_up(ElementType::Float64, double{NAN}).outcome, Outcome::IndexOutOfRange);
    EXPECT_EQ(look_up(ElementType::Float32, INFINITY).outcome, Outcome::IndexOutOfRange);
}

/// An observation of one value, converted to float32.
template <typename Value>
float as_float(ElementType type, Value value) {
    PolicySpec spec;
    spec.action = BoxAction{{-INFINITY}, {INFINITY}};
    spec.program.inputs = {{"x", type, {1}}};
    spec.program.ops = {{"scale", {"y"}, {"x"}, {}, {{"factor", 1.0}, {"offset", std::int64_t{0}}}}};
    spec.head.inputs = {"y"};
    Policy policy = without_weights(spec);
    const void* observation[] = {&value};
    return policy.decide(observation, nullptr).numbers[0];
}

TEST(Decisions, EveryElementTypeIsRead) {
    EXPECT_EQ(as_float(ElementType::Bool, std::uint8_t{1}), 1.0F);
    EXPECT_EQ(as_float(ElementType::UInt8, std::uint8_t{255}), 255.0F);
    EXPECT_EQ(as_float(ElementType::UInt16, std::uint16_t{65535}), 65535.0F);
    EXPECT_EQ(as_float(ElementType::UInt32, std::uint32_t{1} << 31), 0x1p31F);
    EXPECT_EQ(as_float(ElementType::UInt64, std::uint64_t{1} << 63), 0x1p63F);
    EXPECT_EQ(as_float(ElementType::Int8, std::int8_t{-128}), -128.0F);
    EXPECT_EQ(as_float(ElementType::Int16, std::int16_t{-300}), -300.0F);
    EXPECT_EQ(as_float(ElementType::Int32, std::int32_t{-70000}), -70000.0F);
    EXPECT_EQ(as_float(ElementType::Int64, std::int64_t{-5}), -5.0F);
    EXPECT_EQ(as_float(ElementType::Float64, 0.1), 0.1F);
    EXPECT_EQ(as_float(ElementType::Float16, std::uint16_t{0xC500}), -5.0F);
    EXPECT_EQ(as_float(ElementType::Float16, std::uint16_t{0x0001}), 0x1p-24F);
}

TEST(Decisions, MemoryMayComeFromTheLastDecision) {
    PolicySpec spec;
    spec.action = BoxAction{{-INFINITY}, {INFINITY}};
    spec.program.inputs = {{"x", ElementType::Float32, {1}}};
    spec.program.carry = {{"sum", {1}, "next"}};
    spec.program.ops = {{"add", {"next"}, {"x", "sum"}, {}, {}}};
    spec.head.inputs = {"next"};
    Policy policy = without_weights(spec);
    ASSERT_EQ(policy.carry_size(), 1U);
    const float one = 1.0F;
    const void* observation[] = {&one};
    const float* carry = nullptr;
    for (int step = 1; step <= 3; ++step) {
        const Decision decision = policy.decide(observation, nullptr, carry);
        EXPECT_EQ(decision.numbers[0], static_cast<float>(step));
        carry = decision.carry;
    }
}

TEST(Kernels, ActivationsAreWithinAFewUnitsOfTheLibrary) {
    using detail::Kernels;
    struct Function {
        detail::Elementwise Kernels::*kernel;
        double (*expected)(double);
    };
    const Function functions[] = {
        {&Kernels::tanh, [](double x) { return std::tanh(x); }},
        {&Kernels::sigmoid, [](double x) { return 1.0 / (1.0 + std::exp(-x)); }},
        {&Kernels::elu, [](double x) { return x > 0 ? x : std::expm1(x); }},
        {&Kernels::softplus, [](double x) { return std::log1p(std::exp(-std::abs(x))) + std::max(x, 0.0); }},
    };
    std::vector<float> x, y;
    for (float value = 1e-8F; value < 100.0F; value *= 1.01F) x.insert(x.end(), {value, -value});
    y.resize(x.size());
    for (const detail::Kernels* kernels : detail::available_kernels()) {
        for (const Function& function : functions) {
            (kernels->*function.kernel)(x.data(), y.data(), x.size());
            for (std::size_t i = 0; i < x.size(); ++i) {
                EXPECT_NEAR(y[i], function.expected(x[i]), 3e-7 * (1.0 + std::abs(y[i])))
                    << kernels->name << " " << x[i];
            }
        }
        kernels->tanh(x.data(), y.data(), x.size());
        for (std::size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(y[i] / std::tanh(double{x[i]}), 1.0, 5e-7) << x[i];
    }
}

TEST(Kernels, ActivationsAreExactInTheTails) {
    for (const detail::Kernels* kernels : detail::available_kernels()) {
        for (std::size_t outputs = 1; outputs < 70; ++outputs) {
            const std::size_t inputs = outputs % 19;
            std::vector<float> x(inputs), weight(inputs * outputs), bias(outputs), found(outputs + 1, 7.0F);
            for (std::size_t i = 0; i < inputs; ++i) x[i] = static_cast<float>(i + 1);
            for (std::size_t i = 0; i < weight.size(); ++i) weight[i] = static_cast<float>(i % 5) - 2.0F;
            for (std::size_t i = 0; i < outputs; ++i) bias[i] = static_cast<float>(i);
            kernels->linear(x.data(), inputs, weight.data(), bias.data(), found.data(), outputs);
            for (std::size_t j = 0; j < outputs; ++j) {
                float expected = bias[j];
                for (std::size_t i = 0; i < inputs; ++i) expected += x[i] * weight[i * outputs + j];
                ASSERT_EQ(found[j], expected) << kernels->name << " " << inputs << " x " << outputs;
            }
            ASSERT_EQ(found[outputs], 7.0F) << "nothing is written behind the result";
        }
    }
}

}  // namespace
}  // namespace rl4sys
