// Acting with the exploit policy, and beside the fallback.
#include <gtest/gtest.h>

#include "client/fake_server.hpp"
#include "records/temporary.hpp"

namespace rl4sys::testing::acting_mode {
namespace {

const std::vector<float> seen{1.0F, 2.0F};

std::shared_ptr<FakeServer> exploiting() {
    const auto server = std::make_shared<FakeServer>();
    server->exploit = small_exploit_policy();
    return server;
}

ClientSettings in_mode(ActingMode mode) {
    ClientSettings settings = quick_settings();
    settings.mode = mode;
    return settings;
}

TEST(ActingMode, ExploitActsWithTheExploitPolicyAndRecordsNothing) {
    const auto server = exploiting();
    Agent agent = connect_to(server, in_mode(ActingMode::Exploit));
    Episode episode = agent.episode();
    for (int step = 0; step < 300; ++step) {
        EXPECT_EQ(episode.act(seen).choice(), 0) << "of equal sums, the first";
        episode.reward(1.0);
    }
    episode.end(seen);
    ASSERT_TRUE(agent.flush());
    EXPECT_TRUE(server->segments().empty());
    EXPECT_EQ(server->last_join.mode, ActingMode::Exploit);
    const Health health = agent.health();
    EXPECT_EQ(health.mode, "exploit");
    EXPECT_EQ(health.decisions, 300U);
    EXPECT_EQ(health.unrecorded_decisions, 300U);
    EXPECT_EQ(health.late_rewards, 0U);
}

TEST(ActingMode, ExploitNeedsAServerThatSendsTheExploitPolicy) {
    try {
        connect_to(std::make_shared<FakeServer>(), in_mode(ActingMode::Exploit));
        FAIL() << "it connected";
    } catch (const ConnectError& error) {
        EXPECT_NE(std::string(error.what()).find("sent no exploit policy"), std::string::npos);
    }
}

TEST(ActingMode, ACachedPolicyCanExploitWithoutAServer) {
    const TemporaryDirectory directory;
    ClientSettings settings = quick_settings();
    settings.cache = directory.path();
    { const Agent agent = connect_to(exploiting(), settings); }
    const auto away = std::make_shared<FakeServer>();
    away->set_down(true);
    settings.mode = ActingMode::Exploit;
    settings.timeout = 0.05;
    Agent agent = connect_to(away, settings);
    EXPECT_EQ(agent.episode().act(seen).choice(), 0);
}

TEST(ActingMode, ObserveComparesThePolicyWithTheFallbackAndRecordsNothing) {
    const auto server = exploiting();
    int asked = 0;
    const auto zero_of_four = [&asked](const Observation&) { return ++asked % 4 == 0 ? 1 : 0; };
    Agent agent = connect_to(server, in_mode(ActingMode::Observe), zero_of_four);
    Episode episode = agent.episode();
    for (int step = 0; step < 8; ++step) {
        EXPECT_TRUE(episode.act(seen).is_fallback());
        episode.reward(1.0);
    }
    episode.end(seen);
    ASSERT_TRUE(agent.flush());
    EXPECT_TRUE(server->segments().empty());
    const Health health = agent.health();
    EXPECT_EQ(health.fallback_decisions, 8U);
    EXPECT_EQ(health.observed_decisions, 8U);
    EXPECT_EQ(health.agreed_decisions, 6U);
    EXPECT_EQ(health.unrecorded_decisions, 8U);
}

TEST(ActingMode, ObserveNeedsAFallback) {
    EXPECT_THROW(connect_to(exploiting(), in_mode(ActingMode::Observe)), SettingsError);
}

}  // namespace
}  // namespace rl4sys::testing::acting_mode
