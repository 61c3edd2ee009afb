#include "policy/kernel_sets.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "golden.hpp"
#include "policy/plan.hpp"
#include "programs.hpp"

namespace rl4sys {
namespace {

using detail::Kernels;

std::vector<float> random_values(std::size_t count, std::uint32_t seed, double zeros = 0.0) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    std::bernoulli_distribution is_zero(zeros);
    std::vector<float> values(count);
    for (float& value : values) value = is_zero(random) ? 0.0F : normal(random);
    return values;
}

/// Whether all bits are equal; NaN equals itself.
template <typename Value>
bool equal_bits(const Value* first, const Value* second, std::size_t count) {
    return count == 0 || std::memcmp(first, second, count * sizeof(Value)) == 0;
}

TEST(KernelSets, TheFastestIsTheFirstAndTheDefault) {
    const std::vector<std::string> names = kernel_sets();
    EXPECT_EQ(names.front(), kernel_set());
    const PolicySpec spec = dense_policy(2, {}, 2);
    EXPECT_STREQ(Policy(spec, wavy_weights(spec)).kernel_set(), kernel_set());
    EXPECT_EQ(Policy(spec, wavy_weights(spec), names.back()).kernel_set(), names.back());
}

TEST(KernelSets, OneThatTheMachineLacksIsRefusedWithThoseItHas) {
    const PolicySpec spec = dense_policy(2, {}, 2);
    try {
        Policy(spec, wavy_weights(spec), "sse9");
        FAIL() << "an unknown kernel set was accepted";
    } catch (const std::invalid_argument& error) {
        EXPECT_NE(std::string(error.what()).find("'sse9'"), std::string::npos) << error.what();
        EXPECT_NE(std::string(error.what()).find(kernel_set()), std::string::npos) << error.what();
    }
}

TEST(KernelSets, LayersOfAnySizeAreNearTheirSumsInDoublePrecision) {
    for (const Kernels* kernels : detail::available_kernels()) {
        for (const std::size_t outputs : {1U, 7U, 64U, 131U, 512U}) {
            // The largest are read in the order of memory and skip zeros.
            for (const std::size_t inputs : {0U, 1U, 9U, 63U, 300U}) {
                const std::vector<float> x = random_values(inputs, 1, 0.5), bias = random_values(outputs, 2);
                const std::vector<float> weight = random_values(inputs * outputs, 3);
                std::vector<float> found(outputs + 1, 7.0F);
                kernels->linear(x.data(), inputs, weight.data(), bias.data(), found.data(), outputs);
                for (std::size_t j = 0; j < outputs; ++j) {
                    double expected = bias[j];
                    for (std::size_t i = 0; i < inputs; ++i) expected += double{x[i]} * weight[i * outputs + j];
                    ASSERT_NEAR(found[j], expected, 1e-4) << kernels->name << " " << inputs << " x " << outputs;
                }
                ASSERT_EQ(found[outputs], 7.0F) << "nothing is written behind the result";
            }
        }
    }
}

TEST(KernelSets, ARowOfALayerHasTheSameBitsAloneAndAmongOthers) {
    for (const Kernels* kernels : detail::available_kernels()) {
        for (const std::size_t outputs : {3U, 64U, 200U, 512U}) {
            for (const std::size_t inputs : {5U, 64U, 600U}) {
                const std::size_t rows = 11;
                const std::vector<float> x = random_values(rows * inputs, 1, 0.5), bias = random_values(outputs, 2);
                const std::vector<float> weight = random_values(inputs * outputs, 3);
                std::vector<float> alone(rows * outputs), together(rows * outputs);
                for (std::size_t row = 0; row < rows; ++row) {
                    kernels->linear(x.data() + row * inputs, inputs, weight.data(), bias.data(),
                                    alone.data() + row * outputs, outputs);
                }
                kernels->linear_rows(x.data(), inputs, rows, inputs, weight.data(), bias.data(), together.data(),
                                     outputs, outputs);
                ASSERT_TRUE(equal_bits(alone.data(), together.data(), alone.size()))
                    << kernels->name << " " << inputs << " x " << outputs;
            }
        }
    }
}

TEST(KernelSets, PanelsOfAnySizeAreNearTheirSumsInDoublePrecision) {
    for (const Kernels* kernels : detail::available_kernels()) {
        for (const std::size_t positions : {1U, 3U, 4U, 10U}) {
            for (const std::size_t inputs : {1U, 8U, 27U, 70U}) {
                const std::size_t filters = 7, stride = positions + 2;
                const std::vector<float> panel = random_values(positions * inputs, 1), bias = random_values(filters, 2);
                const std::vector<float> weight = random_values(filters * inputs, 3);
                std::vector<float> found(filters * stride, 7.0F);
                kernels->dot_panel(panel.data(), positions, inputs, weight.data(), bias.data(), found.data(), stride,
                                   filters);
                for (std::size_t at = 0; at < found.size(); ++at) {
                    const std::size_t f = at / stride, p = at % stride;
                    double expected = p < positions ? bias[f] : 7.0;
                    for (std::size_t i = 0; p < positions && i < inputs; ++i) {
                        expected += double{panel[p * inputs + i]} * weight[f * inputs + i];
                    }
                    ASSERT_NEAR(found[at], expected, 1e-4) << kernels->name << " " << positions << " x " << inputs;
                }
            }
        }
    }
}

/// Decides the rows of a golden case one by one and in batches, and compares all bits.
void expect_equal_rows(const golden::Case& golden, const Kernels& kernels, std::size_t batch) {
    const auto weights = std::make_shared<const Weights>(golden.arrays.at("weights").all<float>());
    const PolicySpec spec = policy_from_json(golden.entry.at("spec").dump());
    detail::Plan plan(spec, weights, kernels), other(spec, weights, kernels);
    const std::size_t rows = std::min<std::size_t>(200, golden.arrays.at("action").rows());
    const std::size_t noise_values = noise_size(spec), size = plan.action_size(), memory = plan.carry_size();
    const std::vector<float> noise = golden.arrays.at("noise").all<float>(), carry = random_values(rows * memory, 5);
    for (std::size_t first = 0; first < rows; first += batch) {
        const std::size_t count = std::min(batch, rows - first);
        std::vector<const void*> observation;
        for (const ArraySpec& input : spec.program.inputs) {
            observation.push_back(golden.arrays.at("observation." + input.name).row(first));
        }
        const Decisions found = other.decide_rows(count, observation.data(), noise.data() + first * noise_values,
                                                  memory == 0 ? nullptr : carry.data() + first * memory);
        ASSERT_EQ(found.rows, count);
        for (std::size_t row = 0; row < count; ++row) {
            const std::size_t at = first + row;
            for (std::size_t input = 0; input < observation.size(); ++input) {
                observation[input] = golden.arrays.at("observation." + spec.program.inputs[input].name).row(at);
            }
            const Decision alone = plan.decide(observation.data(), noise.data() + at * noise_values,
                                               memory == 0 ? nullptr : carry.data() + at * memory);
            ASSERT_EQ(found.outcomes[row], alone.outcome);
            if (alone.outcome != Outcome::Decided) continue;
            if (alone.choices != nullptr) {
                ASSERT_TRUE(equal_bits(found.choices + row * size, alone.choices, size));
            } else {
                ASSERT_TRUE(equal_bits(found.numbers + row * size, alone.numbers, size));
            }
            ASSERT_TRUE(equal_bits(found.log_probs + row, &alone.log_prob, 1));
            ASSERT_TRUE(equal_bits(found.carry + row * memory, alone.carry, memory));
        }
    }
}

TEST(KernelSets, EveryGoldenRowHasTheSameBitsAloneAndAmongOthers) {
    for (const char* file : {"ops", "heads", "episodes"}) {
        for (const auto& [name, golden] : golden::read_cases(file)) {
            SCOPED_TRACE(name);
            for (const Kernels* kernels : detail::available_kernels()) expect_equal_rows(golden, *kernels, 13);
            if (::testing::Test::HasFatalFailure()) return;
        }
    }
}

TEST(KernelSets, AnUndecidedRowDoesNotAffectTheOthers) {
    PolicySpec spec = dense_policy(2, {}, 3);
    spec.head.kind = HeadKind::Deterministic;
    Policy policy(spec, std::make_shared<const Weights>(Weights{1, 2, 3, 3, 2, 1, 0, 0, 0}));
    const float x[] = {1, 0, NAN, 0, 0, 1};
    const void* observation[] = {x};
    const Decisions found = policy.decide_rows(3, observation, nullptr);
    EXPECT_EQ(found.outcomes[0], Outcome::Decided);
    EXPECT_EQ(found.outcomes[1], Outcome::NotFinite);
    EXPECT_EQ(found.outcomes[2], Outcome::Decided);
    EXPECT_EQ(found.choices[0], 2);
    EXPECT_EQ(found.choices[2], 0);
}

TEST(KernelSets, NoRowsAreNoDecisions) {
    const PolicySpec spec = dense_policy(2, {}, 3);
    Policy policy(spec, wavy_weights(spec));
    EXPECT_EQ(policy.decide_rows(0, nullptr, nullptr).rows, 0U);
}

/// A small network over images, as wide as its convolutions need.
PolicySpec image_policy() {
    PolicySpec spec;
    spec.action = DiscreteAction{5, 0};
    spec.program.inputs = {{"x", ElementType::UInt8, {12, 12, 4}}};
    spec.program.tensors = {{"c.weight", {16, 4, 4, 4}}, {"c.bias", {16}}, {"l.weight", {400, 5}}, {"l.bias", {5}}};
    spec.program.ops = {
        {"scale", {"s"}, {"x"}, {}, {{"factor", 1.0 / 255.0}, {"offset", 0.0}}},
        {"channels_first", {"f"}, {"s"}, {}, {}},
        {"conv2d", {"c"}, {"f"}, {"c.weight", "c.bias"}, {{"stride", std::int64_t{2}}, {"padding", std::int64_t{0}}}},
        {"relu", {"r"}, {"c"}, {}, {}},
        {"flatten", {"v"}, {"r"}, {}, {}},
        {"linear", {"l"}, {"v"}, {"l.weight", "l.bias"}, {}}};
    spec.head.kind = HeadKind::Categorical;
    spec.head.inputs = {"l"};
    return spec;
}

/// The choices of `count` decisions over random observations.
std::vector<std::int64_t> choices_of(const PolicySpec& spec, const Kernels& kernels, std::size_t count) {
    detail::Plan plan(spec, wavy_weights(spec), kernels);
    const KeyedNoise noise(7, {"client", "agent", 0}, noise_size(spec));
    const ArraySpec& input = spec.program.inputs[0];
    std::mt19937 random(11);
    std::vector<float> numbers(noise.size()), x(input.values());
    std::vector<std::uint8_t> bytes(input.values());
    std::vector<std::int64_t> choices;
    for (std::uint64_t step = 0; step < count; ++step) {
        for (float& value : x) value = static_cast<float>(random() >> 8) * 0x1p-23F - 1.0F;
        for (std::uint8_t& value : bytes) value = static_cast<std::uint8_t>(random());
        noise.at(step, numbers.data());
        const bool are_bytes = input.type == ElementType::UInt8;
        const void* observation[] = {are_bytes ? static_cast<const void*>(bytes.data()) : x.data()};
        choices.push_back(plan.decide(observation, numbers.data(), nullptr).choices[0]);
    }
    return choices;
}

TEST(KernelSets, AllSetsMakeTheSame300000Choices) {
    struct Trial {
        PolicySpec spec;
        std::size_t decisions;
    };
    const Trial trials[] = {
        {dense_policy(8, {64, 64}, 4), 240'000}, {dense_policy(16, {160, 80}, 6), 50'000}, {image_policy(), 10'000}};
    for (const Trial& trial : trials) {
        const std::vector<const Kernels*> sets = detail::available_kernels();
        const std::vector<std::int64_t> expected = choices_of(trial.spec, *sets[0], trial.decisions);
        for (std::size_t set = 1; set < sets.size(); ++set) {
            EXPECT_EQ(choices_of(trial.spec, *sets[set], trial.decisions), expected) << sets[set]->name;
        }
        EXPECT_GT(std::count(expected.begin(), expected.end(), 1), 0) << "the choices differ";
    }
}

}  // namespace
}  // namespace rl4sys
