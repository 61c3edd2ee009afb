#include <gtest/gtest.h>

#include <atomic>
#include <limits>

#include "client/fake_server.hpp"

namespace rl4sys::testing {
namespace {

const std::vector<float> seen{1.0F, 2.0F};

TEST(Rewards, ALateRewardReachesItsDecisionWithinTheWindow) {
    const auto server = std::make_shared<FakeServer>();
    ClientSettings settings = quick_settings();
    settings.max_segment_length = 2;
    settings.reward_window = 3;
    Agent agent = connect_to(server, settings);
    Episode episode = agent.episode();
    for (int step = 0; step < 4; ++step) {
        episode.act(seen);
    }
    episode.reward(2.5, 1);
    episode.act(seen);
    episode.act(seen);
    episode.reward(1.0, 0);
    EXPECT_EQ(agent.health().late_rewards, 1U) << "decision 0 is older than the window";
    episode.end(seen);
    episode.reward(1.0, 5);
    EXPECT_EQ(agent.health().late_rewards, 2U) << "the episode was sealed";
    ASSERT_TRUE(agent.flush());
    EXPECT_EQ(column<float>(server->segments()[0], 2), (std::vector<float>{0, 2.5F}));
}

TEST(Rewards, InvalidRewardsAreRefused) {
    const auto server = std::make_shared<FakeServer>();
    Agent agent = connect_to(server);
    Episode episode = agent.episode();
    EXPECT_THROW(episode.reward(1.0), std::invalid_argument) << "nothing was decided yet";
    episode.act(seen);
    EXPECT_THROW(episode.reward(std::numeric_limits<double>::quiet_NaN()), std::invalid_argument);
    EXPECT_THROW(episode.reward(1e39), std::invalid_argument);
    EXPECT_THROW(episode.reward(1.0, 1), std::invalid_argument);
    EXPECT_THROW(episode.end(seen, Ending::Continues), std::invalid_argument);
}

TEST(Rewards, RewardsThatAddUpToInfinityAreDroppedAndCounted) {
    const auto server = std::make_shared<FakeServer>();
    Agent agent = connect_to(server);
    Episode episode = agent.episode();
    episode.act(seen);
    episode.reward(3e38);
    episode.reward(3e38);
    episode.end(seen);
    ASSERT_TRUE(agent.flush());
    EXPECT_EQ(agent.health().drops.at("not_finite"), 1U);
    EXPECT_TRUE(server->segments().empty());
}

/// An agent with segments of two steps, whose clock shows the time that it is set to.
Agent agent_at(const std::shared_ptr<std::atomic<double>>& now, const RewardWindow& window) {
    ClientSettings settings = quick_settings();
    settings.max_segment_length = 2;
    settings.reward_window = window;
    client::Start start = client::fresh_start(settings);
    start.clock = [now] { return now->load(); };
    return client::connect_over(settings, std::make_shared<FakeServer>(), nullptr, start);
}

void decide(Episode& episode, int times) {
    for (int time = 0; time < times; ++time) {
        ASSERT_TRUE(episode.act(std::vector<float>{1, 2}));
    }
}

TEST(Rewards, AWindowInSecondsTakesRewardsHoweverManyDecisionsFollow) {
    const auto now = std::make_shared<std::atomic<double>>(100.0);
    Agent agent = agent_at(now, RewardWindow::of_seconds(30.0));
    Episode episode = agent.episode();
    decide(episode, 100);
    *now = 129.0;
    decide(episode, 100);
    episode.reward(7.0, 0);
    EXPECT_EQ(agent.health().late_rewards, 0U);
}

TEST(Rewards, RewardsAfterTheWindowInSecondsAreLate) {
    const auto now = std::make_shared<std::atomic<double>>(100.0);
    Agent agent = agent_at(now, RewardWindow::of_seconds(30.0));
    Episode episode = agent.episode();
    decide(episode, 3);
    *now = 130.0;
    decide(episode, 1);
    episode.reward(7.0, 1);
    EXPECT_EQ(agent.health().late_rewards, 1U);
}

TEST(Rewards, TimeAloneMakesNoRewardLateInAWindowOfDecisions) {
    const auto now = std::make_shared<std::atomic<double>>(100.0);
    Agent agent = agent_at(now, 4);
    Episode episode = agent.episode();
    decide(episode, 3);
    *now = 3700.0;
    decide(episode, 1);
    episode.reward(7.0, 0);
    EXPECT_EQ(agent.health().late_rewards, 0U);
}

TEST(Rewards, AWindowIsANumberOfDecisionsOrATime) {
    const auto window = [](const std::string& value) {
        return parse_settings(R"({"client_id": "a", "reward_window": )" + value + "}").reward_window;
    };
    EXPECT_EQ(window("4").decisions, 4U);
    EXPECT_EQ(window("\"1.5s\"").seconds, 1.5);
    for (const std::string value : {"\"30\"", "\"30 minutes\"", "\"-1s\"", "-1", "true", "1.5"}) {
        EXPECT_THROW(window(value), SettingsError) << value;
    }
}

}  // namespace
}  // namespace rl4sys::testing
