#include "cache/agent_chooser.hpp"

#include <gtest/gtest.h>

#include "cache_policy.hpp"
#include "client/fake_server.hpp"

namespace examples {
namespace {

using rl4sys::testing::FakeServer;

TEST(AgentChooser, ItChoosesTheCandidateThatThePolicyPrefers) {
    const auto server = std::make_shared<FakeServer>(cache_policy());
    rl4sys::Agent agent = rl4sys::testing::connect_to(server);
    AgentChooser chooser(agent);
    Candidates candidates{};
    // The policy of the server has the same positive weight for every feature.
    candidates[11].fill(1'000.0F);
    for (std::int64_t decision = 0; decision < 20; ++decision) {
        const Victim victim = chooser.choose(candidates);
        EXPECT_EQ(victim.candidate, 11U);
        EXPECT_EQ(victim.decision, decision);
    }
}

TEST(AgentChooser, ARegrettedDecisionCostsOneByItsId) {
    const auto server = std::make_shared<FakeServer>(cache_policy());
    rl4sys::ClientSettings settings = rl4sys::testing::quick_settings();
    settings.reward_window = 8;
    rl4sys::Agent agent = rl4sys::testing::connect_to(server, settings);
    {
        AgentChooser chooser(agent);
        for (int decision = 0; decision < 6; ++decision) chooser.choose(Candidates{});
        chooser.regret(2);
    }
    ASSERT_TRUE(agent.flush());
    // Columns: candidates, their number, action, reward.
    const std::vector<float> rewards = rl4sys::testing::column<float>(server->segments().at(0), 3);
    ASSERT_GE(rewards.size(), 5U);
    EXPECT_EQ(std::vector<float>(rewards.begin(), rewards.begin() + 5), (std::vector<float>{0, 0, -1, 0, 0}));
}

TEST(AgentChooser, WithoutAnActionItStillChooses) {
    const auto server = std::make_shared<FakeServer>(cache_policy());
    rl4sys::Agent agent = rl4sys::testing::connect_to(server);
    AgentChooser chooser(agent);
    agent.close();
    const Victim victim = chooser.choose(Candidates{});
    EXPECT_EQ(victim.candidate, 0U);
    EXPECT_LT(victim.decision, 0);
}

}  // namespace
}  // namespace examples
