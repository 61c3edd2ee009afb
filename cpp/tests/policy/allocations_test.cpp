#include <gtest/gtest.h>

#include "counted_allocations.hpp"
#include "golden.hpp"
#include "policy/programs.hpp"
#include "rl4sys/policy.hpp"

namespace rl4sys {
namespace {

class NoAllocationIn : public ::testing::TestWithParam<std::string> {};

TEST_P(NoAllocationIn, PerDecision) {
    for (const auto& [name, golden] : golden::read_cases(GetParam())) {
        const PolicySpec spec = policy_from_json(golden.entry.at("spec").dump());
        const auto first = std::make_shared<const Weights>(golden.arrays.at("weights").all<float>());
        const auto second = std::make_shared<const Weights>(*first);
        Policy policy(spec, first);
        KeyedNoise noise(7, {"client", "agent", 0}, policy.noise_size());
        std::vector<float> numbers(noise.size());
        std::vector<const void*> observation;
        for (const ArraySpec& input : spec.program.inputs) {
            observation.push_back(golden.arrays.at("observation." + input.name).row(0));
        }
        const float* carry = nullptr;
        testing::count_allocations(true);
        for (std::uint64_t step = 0; step < 100; ++step) {
            noise.at(step, numbers.data());
            carry = policy.decide(observation.data(), numbers.data(), carry).carry;
            policy.load(step % 2 == 0 ? second : first);
        }
        testing::count_allocations(false);
        EXPECT_EQ(testing::counted_allocations(), 0U) << name;
    }
}

TEST(NoAllocation, InBatchesOfAsManyRowsAsBefore) {
    const PolicySpec spec = dense_policy(8, {64, 64}, 4);
    Policy policy(spec, wavy_weights(spec));
    const std::vector<float> x(20 * 8, 0.5F), noise(20 * policy.noise_size(), 0.5F);
    const void* observation[] = {x.data()};
    policy.decide_rows(20, observation, noise.data());
    testing::count_allocations(true);
    for (std::size_t rows = 1; rows <= 20; ++rows) policy.decide_rows(rows, observation, noise.data());
    testing::count_allocations(false);
    EXPECT_EQ(testing::counted_allocations(), 0U);
}

TEST(NoAllocation, TheCounterCountsAllocations) {
    testing::count_allocations(true);
    const std::vector<int> taken(3);
    testing::count_allocations(false);
    EXPECT_EQ(testing::counted_allocations(), 1U);
}

INSTANTIATE_TEST_SUITE_P(Golden, NoAllocationIn, ::testing::Values("ops", "heads", "episodes"));

}  // namespace
}  // namespace rl4sys
