#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "client/fake_server.hpp"

namespace rl4sys::testing {
namespace {

using Rows = std::vector<float>;

const float not_a_number = std::numeric_limits<float>::quiet_NaN();
const float infinity = std::numeric_limits<float>::infinity();

Rows observed(int step) {
    return {static_cast<float>(step), 0.0F};
}

/// A policy in which huge observations overflow.
std::shared_ptr<FakeServer> overflowing_server(PolicySpec spec = small_policy()) {
    auto server = std::make_shared<FakeServer>(std::move(spec));
    server->publish(4.0F);
    return server;
}

ClientSettings settings_with(BadInputChoice choice) {
    ClientSettings settings = quick_settings();
    settings.on_bad_input = choice;
    return settings;
}

FallbackAction second_choice(const Observation& /*observation*/) {
    return 2;
}

class BadInput : public ::testing::TestWithParam<Rows> {};

INSTANTIATE_TEST_SUITE_P(Kinds, BadInput,
                         ::testing::Values(Rows{not_a_number, 0}, Rows{0, infinity}, Rows{1}, Rows{},
                                           Rows{3e38F, 3e38F}));

TEST_P(BadInput, AFallbackDecidesAndOnlyThatDecisionIsNotRecorded) {
    const auto server = overflowing_server();
    Agent agent = connect_to(server, quick_settings(), second_choice);
    Episode episode = agent.episode();
    for (int step = 0; step < 6; ++step) {
        const Action action = episode.act(step == 3 ? GetParam() : observed(step));
        ASSERT_TRUE(action) << action.message();
        EXPECT_EQ(action.is_fallback(), step == 3);
        EXPECT_TRUE(step != 3 || action.choice() == 2);
        episode.reward(step == 3 ? 100 : step);
    }
    episode.end(observed(6));
    ASSERT_TRUE(agent.flush());
    const Health health = agent.health();
    EXPECT_EQ((std::vector{health.bad_inputs, health.fallback_decisions, health.unrecorded_decisions}),
              (std::vector<std::uint64_t>{1, 1, 1}));
    EXPECT_TRUE(health.drops.empty());
    EXPECT_EQ(health.late_rewards, 0U);
    const auto segments = server->segments();
    ASSERT_EQ(segments.size(), 2U);
    EXPECT_EQ(segments[0].ending(), v1::ENDING_TRUNCATED);
    EXPECT_EQ(column<float>(segments[0], 0), (Rows{0, 0, 1, 0, 2, 0, 2, 0}));
    EXPECT_EQ(column<float>(segments[0], 2), (Rows{0, 1, 2}));
    EXPECT_EQ(segments[1].start(), 4U);
    EXPECT_EQ(column<float>(segments[1], 2), (Rows{4, 5}));
}

TEST_P(BadInput, WithoutAFallbackThereIsOneClearProblemAndNothingChanges) {
    const auto server = overflowing_server();
    Agent agent = connect_to(server);
    Episode episode = agent.episode();
    ASSERT_TRUE(episode.act(observed(0)));
    const Action action = episode.act(GetParam());
    EXPECT_EQ(action.problem(), Problem::BadObservation);
    EXPECT_FALSE(action.message().empty());
    EXPECT_EQ(episode.decision(), 0);
    ASSERT_TRUE(episode.act(observed(1)));
    episode.end(observed(2));
    ASSERT_TRUE(agent.flush());
    EXPECT_EQ(agent.health().bad_inputs, 1U);
    EXPECT_EQ(column<float>(server->segments()[0], 0), (Rows{0, 0, 1, 0, 2, 0}));
}

TEST(BadInput, HoldTakesTheLastActionAgain) {
    Agent agent = connect_to(overflowing_server(), settings_with(BadInputChoice::Hold));
    Episode episode = agent.episode();
    const std::int64_t choice = episode.act(observed(0)).choice();
    for (int step = 1; step < 4; ++step) {
        const Action action = episode.act(Rows{not_a_number, not_a_number});
        EXPECT_EQ(action.choice(), choice);
        EXPECT_EQ(action.decision(), step);
    }
    EXPECT_EQ(agent.health().fallback_decisions, 0U);
}

TEST(BadInput, HoldWithoutAnActionYetAsksTheFallbackOrFails) {
    Agent agent = connect_to(overflowing_server(), settings_with(BadInputChoice::Hold), second_choice);
    EXPECT_EQ(agent.episode().act(Rows{not_a_number, not_a_number}).choice(), 2);
    Agent other = connect_to(overflowing_server(), settings_with(BadInputChoice::Hold));
    Episode first = other.episode();
    ASSERT_TRUE(first.act(observed(0)));
    first.end();
    EXPECT_EQ(other.episode().act(Rows{not_a_number, not_a_number}).problem(), Problem::BadObservation)
        << "another episode acted";
}

TEST(BadInput, RaiseCanBeChosenAlthoughThereIsAFallback) {
    Agent agent = connect_to(overflowing_server(), settings_with(BadInputChoice::Raise), second_choice);
    EXPECT_EQ(agent.episode().act(Rows{not_a_number, not_a_number}).problem(), Problem::BadObservation);
}

TEST(BadInput, AMaskThatForbidsEverythingGoesToTheFallback) {
    Agent agent = connect_to(overflowing_server(small_policy(true)), quick_settings(), second_choice);
    EXPECT_EQ(agent.episode().act(observed(0), std::array<bool, 3>{}).choice(), 2);
    EXPECT_EQ(agent.health().bad_inputs, 1U);
}

TEST(BadInput, ADecisionThatIsNotFiniteIsFoundInEveryKindOfPolicy) {
    PolicySpec deterministic = small_policy();
    deterministic.head.kind = HeadKind::Deterministic;
    PolicySpec gaussian = small_policy();
    gaussian.action = BoxAction{{-1, -1, -1}, {1, 1, 1}};
    gaussian.program.tensors.push_back({"s", {3}});
    gaussian.head.kind = HeadKind::Gaussian;
    gaussian.head.tensors = {"s"};
    for (const PolicySpec& spec : {small_policy(), deterministic, gaussian}) {
        Agent agent = connect_to(overflowing_server(spec));
        const Action action = agent.episode().act(Rows{3e38F, 3e38F});
        EXPECT_NE(action.message().find("too large"), std::string::npos) << action.message();
    }
}

TEST(BadInput, ABadFinalObservationIsNoErrorWithAFallback) {
    const auto server = overflowing_server();
    Agent agent = connect_to(server, quick_settings(), second_choice);
    Episode episode = agent.episode();
    for (int step = 0; step < 3; ++step) {
        ASSERT_TRUE(episode.act(observed(step)));
    }
    episode.end(Rows{not_a_number, not_a_number}, Ending::Truncated);
    ASSERT_TRUE(agent.flush());
    EXPECT_EQ(agent.health().bad_inputs, 1U);
    EXPECT_EQ(server->segments()[0].steps(), 2U);
}

TEST(BadInput, ABadFinalObservationIsAnErrorWithoutAFallback) {
    Agent agent = connect_to(overflowing_server());
    Episode episode = agent.episode();
    ASSERT_TRUE(episode.act(observed(0)));
    EXPECT_THROW(episode.end(Rows{not_a_number, not_a_number}), std::invalid_argument);
    EXPECT_FALSE(episode.ended());
    episode.end(observed(1));
}

TEST(BadInput, ManyBadInputsLoseNoGoodDecision) {
    const auto server = overflowing_server();
    ClientSettings settings = quick_settings();
    settings.reward_window = 16;
    Agent agent = connect_to(server, settings, second_choice);
    Episode episode = agent.episode();
    for (int step = 0; step < 200; ++step) {
        ASSERT_TRUE(episode.act(step % 2 == 0 ? Rows{not_a_number, not_a_number} : observed(step)));
        episode.reward(1.0);
    }
    episode.end(observed(200));
    ASSERT_TRUE(agent.flush());
    EXPECT_EQ(agent.health().bad_inputs, 100U);
    EXPECT_EQ(agent.health().late_rewards, 0U);
    std::uint64_t steps = 0;
    for (const v1::Segment& segment : server->segments()) {
        steps += segment.steps();
    }
    EXPECT_EQ(steps, 100U);
}

TEST(BadInput, AFallbackIsNeededWhereTheSettingsAskForOne) {
    EXPECT_THROW(connect_to(overflowing_server(), settings_with(BadInputChoice::FallBack)), SettingsError);
}

}  // namespace
}  // namespace rl4sys::testing
