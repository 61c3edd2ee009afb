#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "golden.hpp"
#include "rl4sys/policy.hpp"

namespace {
std::atomic<long> allocations{0};

void* counted(std::size_t size) {
    ++allocations;
    if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
    throw std::bad_alloc();
}
}  // namespace

void* operator new(std::size_t size) {
    return counted(size);
}
void* operator new[](std::size_t size) {
    return counted(size);
}
void operator delete(void* memory) noexcept {
    std::free(memory);
}
void operator delete[](void* memory) noexcept {
    std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
    std::free(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
    std::free(memory);
}

namespace rl4sys {
namespace {

class NoAllocation : public ::testing::TestWithParam<std::string> {};

TEST_P(NoAllocation, PerDecision) {
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
        const long before = allocations;
        const float* carry = nullptr;
        for (std::uint64_t step = 0; step < 100; ++step) {
            noise.at(step, numbers.data());
            carry = policy.decide(observation.data(), numbers.data(), carry).carry;
            policy.load(step % 2 == 0 ? second : first);
        }
        EXPECT_EQ(allocations - before, 0) << name;
    }
    EXPECT_GT(allocations, 0) << "the counter must count";
}

INSTANTIATE_TEST_SUITE_P(Golden, NoAllocation, ::testing::Values("ops", "heads"));

}  // namespace
}  // namespace rl4sys
