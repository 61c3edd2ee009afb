#include <gtest/gtest.h>

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

}  // namespace
}  // namespace rl4sys::testing
