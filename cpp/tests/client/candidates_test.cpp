#include <gtest/gtest.h>

#include <array>
#include <limits>

#include "client/fake_server.hpp"

namespace rl4sys::testing {
namespace {

/// Scores each of up to four candidates by the sum of its two features.
PolicySpec candidate_policy() {
    PolicySpec spec;
    spec.action = DiscreteAction{4, 0};
    spec.program.inputs = {{"candidates", ElementType::Float32, {4, 2}},
                           {"candidate_count", ElementType::Float32, {1}}};
    spec.program.ops = {
        {"candidate_linear",
         {"r0"},
         {"candidates", "candidate_count"},
         {"w", "b"},
         {{"activation", std::string("none")}}},
        {"flatten", {"r1"}, {"r0"}, {}, {}},
    };
    spec.program.tensors = {{"w", {2, 1}}, {"b", {1}}};
    spec.head.kind = HeadKind::Categorical;
    spec.head.inputs = {"r1"};
    spec.head.settings = {{"count", std::string("candidate_count")}};
    return spec;
}

ClientSettings candidate_settings() {
    ClientSettings settings = parse_settings(R"({"client_id": "test", "candidates": [4, 2]})");
    ClientSettings quick = quick_settings();
    quick.observation = settings.observation;
    quick.action = settings.action;
    return quick;
}

TEST(Candidates, ActTakesAnyNumberOfRowsAndReturnsTheIndexOfOne) {
    const auto server = std::make_shared<FakeServer>(candidate_policy());
    Agent agent = connect_to(server, candidate_settings());
    Episode episode = agent.episode();
    for (const std::size_t count : {3U, 1U, 4U, 2U}) {
        const std::vector<float> rows(2 * count, 1.0F);
        const Action action = episode.act(rows);
        ASSERT_TRUE(action) << action.message();
        EXPECT_LT(action.choice(), static_cast<std::int64_t>(count));
    }
    const std::array<float, 8> all{};
    EXPECT_EQ(episode.act({{"candidates", all}, {"candidate_count", std::array<float, 1>{1}}}).choice(), 0);
}

TEST(Candidates, RowsThatCannotBeUsedAreOneClearSentence) {
    const auto server = std::make_shared<FakeServer>(candidate_policy());
    Agent agent = connect_to(server, candidate_settings());
    Episode episode = agent.episode();
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const std::vector<std::pair<std::vector<float>, std::string>> bad{
        {std::vector<float>(10, 0.0F), "among 4 at most"},
        {std::vector<float>(3, 0.0F), "rows of 2 features"},
        {{nan, 0.0F}, "NaN or infinity"},
    };
    for (const auto& [rows, problem] : bad) {
        const Action action = episode.act(rows);
        EXPECT_FALSE(action);
        EXPECT_NE(action.message().find(problem), std::string::npos) << action.message();
    }
    EXPECT_FALSE(episode.act({{"candidates", std::vector<float>{}}}));
    EXPECT_TRUE(episode.act(std::vector<float>{1.0F, 2.0F}));
}

TEST(Candidates, AChoiceThatIsNotAmongThemIsRefused) {
    const auto server = std::make_shared<FakeServer>(candidate_policy());
    Agent agent = connect_to(server, candidate_settings());
    Episode episode = agent.episode();
    const std::vector<float> two(4, 1.0F);
    try {
        episode.took(two, 2);
        FAIL() << "not refused";
    } catch (const std::invalid_argument& error) {
        EXPECT_STREQ(error.what(), "Got choice 2 of 2 candidates; the first is 0.");
    }
    episode.took(two, 1);
    EXPECT_EQ(episode.decision(), 0);
    EXPECT_EQ(agent.health().incumbent_decisions, 1U);
}

TEST(Candidates, AFallbackThatChoosesNoneOfThemIsRefused) {
    const auto server = std::make_shared<FakeServer>(candidate_policy());
    ClientSettings settings = candidate_settings();
    settings.on_bad_input = BadInputChoice::FallBack;
    Agent agent = connect_to(server, settings, [](const Observation&) { return 2; });
    Episode episode = agent.episode();
    const float nan = std::numeric_limits<float>::quiet_NaN();
    EXPECT_EQ(episode.act(std::vector<float>{nan, 0, 0, 0, 0, 0}).choice(), 2);
    const Action refused = episode.act(std::vector<float>{nan, 0, 0, 0});
    EXPECT_EQ(refused.problem(), Problem::FallbackFailed);
    EXPECT_NE(refused.message().find("Got choice 2 of 2 candidates"), std::string::npos) << refused.message();
    const std::array<float, 8> all{nan};
    const std::array<float, 1> one{1};
    EXPECT_EQ(episode.act({{"candidates", all}, {"candidate_count", one}}).problem(), Problem::FallbackFailed);
    EXPECT_EQ(agent.health().fallback_decisions, 1U);
}

TEST(Candidates, SettingsThatContradictEachOtherAreRefused) {
    EXPECT_THROW(parse_settings(R"({"candidates": 4})"), SettingsError);
    EXPECT_THROW(parse_settings(R"({"candidates": [4, 2], "action": 5})"), SettingsError);
}

}  // namespace
}  // namespace rl4sys::testing
