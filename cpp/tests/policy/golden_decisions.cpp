// KERNELS: prints the decisions of the golden heads with this kernel set, for tests/cpp to compare with Python's.
#include <cstdio>
#include <iostream>
#include <memory>

#include "golden.hpp"
#include "rl4sys/policy.hpp"

namespace {

using namespace rl4sys;

template <typename Value>
std::string hex_of(const Value* values, std::size_t count) {
    std::string text;
    const auto* bytes = reinterpret_cast<const unsigned char*>(values);
    for (std::size_t place = 0; values != nullptr && place < count * sizeof(Value); ++place) {
        char digits[3];
        std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned>(bytes[place]));
        text += digits;
    }
    return text;
}

/// The decisions of all rows of a case, as bytes.
golden::Json decisions_of(const golden::Case& golden, const std::string& kernels) {
    const auto weights = std::make_shared<const Weights>(golden.arrays.at("weights").all<float>());
    Policy policy(policy_from_json(golden.entry.at("spec").dump()), weights, kernels);
    const std::size_t rows = golden.arrays.at("action").rows();
    std::vector<const void*> observation;
    for (const ArraySpec& input : policy.spec().program.inputs) {
        observation.push_back(golden.arrays.at("observation." + input.name).bytes.data());
    }
    std::vector<float> carry;
    for (std::size_t row = 0; row < rows; ++row) {
        for (const Memory& memory : policy.spec().program.carry) {
            for (const float value : golden.arrays.at("carry." + memory.name).row_as<float>(row)) {
                carry.push_back(value);
            }
        }
    }
    const std::vector<float> noise = golden.arrays.at("noise").all<float>();
    const Decisions found =
        policy.decide_rows(rows, observation.data(), noise.data(), carry.empty() ? nullptr : carry.data());
    return {{"choices", hex_of(found.choices, rows * policy.action_size())},
            {"numbers", hex_of(found.numbers, rows * policy.action_size())},
            {"log_probs", policy.spec().noted().empty() ? "" : hex_of(found.log_probs, rows)},
            {"carry", hex_of(found.carry, rows * policy.carry_size())}};
}

}  // namespace

int main(int, char** words) {
    golden::Json decided;
    for (const auto& [name, golden] : golden::read_cases("heads")) {
        decided[name] = decisions_of(golden, words[1]);
    }
    std::cout << decided << "\n";
    return 0;
}
