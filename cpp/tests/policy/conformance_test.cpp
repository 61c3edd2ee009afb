#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "golden.hpp"
#include "policy/kernel_sets.hpp"
#include "policy/plan.hpp"

namespace rl4sys {
namespace {

using golden::Array;
using golden::Case;
using golden::Json;

const std::map<std::string, Case>& cases(const std::string& file) {
    static const std::map<std::string, std::map<std::string, Case>> read{{"ops", golden::read_cases("ops")},
                                                                         {"heads", golden::read_cases("heads")},
                                                                         {"episodes", golden::read_cases("episodes")}};
    return read.at(file);
}

::testing::AssertionResult near(float found, float expected) {
    // Written so that NaN fails.
    if (std::abs(found - expected) <= 1e-5F + 1e-5F * std::abs(expected)) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << found << " is not near " << expected;
}

/// The expected memory of one row, all arrays one after the other.
std::vector<float> carry_row(const Case& golden, const PolicySpec& spec, const std::string& group, std::size_t row) {
    std::vector<float> all;
    for (const Memory& memory : spec.program.carry) {
        for (const float value : golden.arrays.at(group + "." + memory.name).row_as<float>(row)) all.push_back(value);
    }
    return all;
}

void expect_action(const Decision& decision, const Array& action, std::size_t row) {
    if (action.type == ElementType::Float32) {
        const std::vector<float> expected = action.row_as<float>(row);
        ASSERT_NE(decision.numbers, nullptr);
        for (std::size_t i = 0; i < expected.size(); ++i) {
            ASSERT_TRUE(near(decision.numbers[i], expected[i])) << "row " << row << ", number " << i;
        }
        return;
    }
    const std::vector<std::uint8_t> expected = action.row_as<std::uint8_t>(row);
    ASSERT_NE(decision.choices, nullptr);
    for (std::size_t i = 0; i < expected.size(); ++i) {
        ASSERT_EQ(decision.choices[i], std::int64_t{expected[i]}) << "row " << row << ", choice " << i;
    }
}

/// Compares every row. Those of an episode start from the memory that the one before left.
void expect_agreement(const Case& golden, const detail::Kernels& kernels, bool is_episode = false) {
    PolicySpec parsed = policy_from_json(golden.entry.at("spec").dump());
    const auto weights = std::make_shared<const Weights>(golden.arrays.at("weights").all<float>());
    detail::Plan plan(std::move(parsed), weights, kernels);
    const PolicySpec& spec = plan.spec();
    const Array& action = golden.arrays.at("action");
    const auto log_prob = golden.arrays.find("extras.log_prob");
    ASSERT_EQ(log_prob != golden.arrays.end(), !spec.noted().empty());
    std::vector<float> carry;
    for (std::size_t row = 0; row < action.rows(); ++row) {
        std::vector<const void*> observation;
        for (const ArraySpec& input : spec.program.inputs) {
            observation.push_back(golden.arrays.at("observation." + input.name).row(row));
        }
        const std::vector<float> noise = golden.arrays.at("noise").row_as<float>(row);
        ASSERT_EQ(noise.size(), noise_size(spec));
        if (!is_episode) carry = carry_row(golden, spec, "carry", row);
        const Decision decision = plan.decide(observation.data(), noise.data(), carry.empty() ? nullptr : carry.data());
        ASSERT_EQ(decision.outcome, Outcome::Decided) << "row " << row;
        expect_action(decision, action, row);
        if (::testing::Test::HasFatalFailure()) return;
        if (log_prob != golden.arrays.end()) {
            ASSERT_TRUE(near(decision.log_prob, log_prob->second.row_as<float>(row)[0])) << "row " << row;
        }
        const std::vector<float> next = carry_row(golden, spec, "next_carry", row);
        for (std::size_t i = 0; i < next.size(); ++i) ASSERT_TRUE(near(decision.carry[i], next[i])) << "row " << row;
        if (is_episode) carry.assign(decision.carry, decision.carry + next.size());
    }
}

class EveryOp : public ::testing::TestWithParam<std::string> {};
class EveryEpisode : public ::testing::TestWithParam<std::string> {};
class EveryHead : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryOp, ComputesWhatTorchComputes) {
    for (const detail::Kernels* kernels : detail::available_kernels()) {
        expect_agreement(cases("ops").at(GetParam()), *kernels);
    }
}

TEST_P(EveryHead, DecidesWhatTorchDecides) {
    const Case& golden = cases("heads").at(GetParam());
    ASSERT_EQ(golden.arrays.at("action").rows(), GetParam().find("candidates") != std::string::npos ? 400U : 10000U);
    for (const detail::Kernels* kernels : detail::available_kernels()) expect_agreement(golden, *kernels);
}

TEST_P(EveryEpisode, DecidesAndRemembersWhatTorchDoes) {
    for (const detail::Kernels* kernels : detail::available_kernels()) {
        expect_agreement(cases("episodes").at(GetParam()), *kernels, true);
    }
}

std::string as_it_is(const ::testing::TestParamInfo<std::string>& parameter) {
    return parameter.param;
}

INSTANTIATE_TEST_SUITE_P(Golden, EveryOp, ::testing::ValuesIn(golden::case_names("ops")), as_it_is);
INSTANTIATE_TEST_SUITE_P(Golden, EveryEpisode, ::testing::ValuesIn(golden::case_names("episodes")), as_it_is);
INSTANTIATE_TEST_SUITE_P(Golden, EveryHead, ::testing::ValuesIn(golden::case_names("heads")), as_it_is);

TEST(Conformance, EveryOpHasAGoldenVector) {
    std::set<std::string> seen;
    for (const auto& [name, golden] : cases("ops")) {
        for (const Json& op : golden.entry.at("spec").at("program").at("ops")) seen.insert(op.at("kind"));
    }
    EXPECT_EQ(seen, std::set<std::string>(known_ops().begin(), known_ops().end()));
}

TEST(Conformance, SpecsAreWrittenAsPythonWritesThem) {
    for (const char* file : {"ops", "heads", "episodes"}) {
        for (const auto& [name, golden] : cases(file)) {
            const std::string text = golden.entry.at("spec").dump(-1, ' ', true);
            EXPECT_EQ(policy_to_json(policy_from_json(text)), text) << name;
        }
    }
}

TEST(Conformance, PhiloxGivesItsPublishedAnswers) {
    const Json index = Json::parse(golden::read_file("noise.json"));
    for (const Json& answer : index.at("philox")) {
        EXPECT_EQ(philox(answer.at("counter"), answer.at("key")),
                  (answer.at("words").get<std::array<std::uint32_t, 4>>()));
    }
}

TEST(Conformance, StreamsHaveTheirGoldenNumbers) {
    const Json index = Json::parse(golden::read_file("noise.json"));
    for (const Json& golden : index.at("streams")) {
        const StreamKey stream{golden.at("client"), golden.at("agent"), golden.at("lane")};
        EXPECT_EQ(stream_key(golden.at("seed"), stream), (golden.at("key").get<std::array<std::uint32_t, 2>>()));
        const KeyedNoise noise(golden.at("seed"), stream, golden.at("size"));
        std::vector<float> numbers(noise.size());
        for (const Json& step : golden.at("steps")) {
            noise.at(step.at("step"), numbers.data());
            EXPECT_EQ(numbers, step.at("uniform").get<std::vector<float>>());
            const std::vector<float> expected = step.at("normal");
            for (std::size_t j = 0; j < expected.size(); ++j) {
                EXPECT_TRUE(near(normal(numbers[2 * j], numbers[2 * j + 1]), expected[j]));
            }
        }
    }
}

}  // namespace
}  // namespace rl4sys
