// Levels of a client, and profiles that an operator orders through the server.
#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "client/fake_server.hpp"
#include "client/profiler.hpp"
#include "rl4sys/client_level.hpp"

namespace rl4sys::testing::levels {
namespace {

using client::DecisionTimes;

const std::vector<float> seen{1.0F, 2.0F};
const Fallback second = [](const Observation&) { return 2; };

void run_episode(Agent& agent, int length = 20) {
    Episode episode = agent.episode();
    for (int step = 0; step < length; ++step) {
        ASSERT_TRUE(episode.act(seen));
        episode.reward(1.0);
    }
    episode.end(seen);
}

/// An agent that took 20 decisions at a level.
Health health_at(const std::shared_ptr<FakeServer>& server, ClientLevel level) {
    Agent agent = connect_to(server, quick_settings(), second);
    agent.set_level(level);
    run_episode(agent);
    EXPECT_TRUE(agent.flush());
    return agent.health();
}

TEST(Levels, OffLetsTheFallbackDecideAndRecordsNothing) {
    const auto server = std::make_shared<FakeServer>();
    const Health health = health_at(server, ClientLevel::Off);
    EXPECT_EQ(health.off, "level");
    EXPECT_EQ(health.decisions, 0U);
    EXPECT_EQ(health.fallback_decisions, 20U);
    EXPECT_TRUE(server->segments().empty());
}

TEST(Levels, DecideLetsThePolicyDecideAndRecordsNothing) {
    const auto server = std::make_shared<FakeServer>();
    const Health health = health_at(server, ClientLevel::Decide);
    EXPECT_EQ(health.off, "");
    EXPECT_EQ(health.decisions, 20U);
    EXPECT_EQ(health.unrecorded_decisions, 20U);
    EXPECT_TRUE(server->segments().empty());
}

TEST(Levels, RecordEncodesDecisionsAndDropsThemWithACount) {
    const auto server = std::make_shared<FakeServer>();
    const Health health = health_at(server, ClientLevel::Record);
    EXPECT_EQ(health.drops, (std::map<std::string, std::uint64_t>{{"not_sent_at_level_record", 1}}));
    EXPECT_TRUE(server->segments().empty());
}

TEST(Levels, FullSendsWhatWasRecorded) {
    const auto server = std::make_shared<FakeServer>();
    health_at(server, ClientLevel::Full);
    ASSERT_EQ(server->segments().size(), 1U);
    EXPECT_EQ(server->segments()[0].steps(), 20U);
}

TEST(Levels, OnlyTheFullLevelTakesNewVersions) {
    const auto server = std::make_shared<FakeServer>();
    Agent agent = connect_to(server);
    agent.set_level(ClientLevel::Decide);
    server->publish(0.5F);
    server->order(client::ControlMode::Follow, 1);
    ASSERT_TRUE(eventually([&] { return agent.health().control_sequence == 1; }));
    EXPECT_EQ(agent.health().version, 0U);
    agent.set_level(ClientLevel::Full);
    server->publish(0.75F);
    EXPECT_TRUE(eventually([&] { return agent.health().version == 2; }));
}

TEST(Levels, OffWithoutAFallbackIsRefused) {
    Agent agent = connect_to(std::make_shared<FakeServer>());
    EXPECT_THROW(agent.set_level(ClientLevel::Off), std::invalid_argument);
    EXPECT_EQ(agent.level(), ClientLevel::Full);
}

TEST(Levels, EveryRoundHasEachLevelOnceInRandomOrder) {
    const auto rounds = client::profile_rounds({1, 60.0, 1});
    EXPECT_EQ(rounds.size(), 12U);
    std::set<std::vector<ClientLevel>> orders;
    for (const auto& blocks : rounds) {
        std::vector<ClientLevel> order;
        for (const auto& [level, seconds] : blocks) {
            order.push_back(level);
            EXPECT_GE(seconds, 0.5);
            EXPECT_LE(seconds, 2.0);
        }
        orders.insert(order);
        EXPECT_EQ(std::set<ClientLevel>(order.begin(), order.end()).size(), 4U);
    }
    EXPECT_GT(orders.size(), 1U);
}

TEST(Levels, AProfileTimesEveryDecision) {
    DecisionTimes times;
    EXPECT_FALSE(times.wants(1));
    times.start_profile();
    EXPECT_TRUE(times.wants(1));
    times.add(0, 1 << 10);
    times.add(1, 1 << 10);
    times.add(2, 1500);
    const client::ProfiledTimes taken = times.take_profile();
    EXPECT_EQ(taken.counts, (std::map<std::uint32_t, std::uint64_t>{{320, 2}, {337, 1}}));
    EXPECT_EQ(taken.longest, 1500U);
    EXPECT_TRUE(times.take_profile().counts.empty());
    const std::vector<std::uint64_t> sampled = times.counts();
    EXPECT_EQ(std::accumulate(sampled.begin(), sampled.end(), std::uint64_t{0}), 1U);
}

std::shared_ptr<FakeServer> measuring(double seconds = 600.0) {
    const auto server = std::make_shared<FakeServer>();
    server->report_seconds = 0.01;
    server->profile = wire::ProfileOrder{7, seconds, 1};
    return server;
}

wire::ProfileProgress last_progress(FakeServer& server) {
    return server.last_report().profile.value_or(wire::ProfileProgress{});
}

TEST(Profiles, BlocksAreReportedAndAReplyWithoutTheOrderEndsIt) {
    const auto server = measuring();
    Agent agent = connect_to(server, quick_settings(), second);
    ASSERT_TRUE(eventually([&] {
        run_episode(agent);
        return last_progress(*server).first_block >= 1;
    }));
    wire::ProfileBlock block;
    server->change([&] {
        server->profile.reset();
        for (const wire::ReportRequest& report : server->reports) {
            if (report.profile && !report.profile->blocks.empty()) {
                block = report.profile->blocks[0];
            }
        }
    });
    ASSERT_TRUE(eventually([&] { return last_progress(*server).is_complete; }));
    EXPECT_EQ(last_progress(*server).problem, "it was ended early");
    EXPECT_EQ(agent.level(), ClientLevel::Full);
    EXPECT_GT(block.decisions, 0U);
    EXPECT_GE(block.seconds, 0.5);
    EXPECT_GT(block.cpu_seconds, 0.0);
    EXPECT_GT(block.memory_bytes, 0U);
    EXPECT_GT(block.longest_nanoseconds, 0U);
}

TEST(Profiles, AClientWithoutAFallbackReportsWhyItCannotBeMeasured) {
    const auto server = measuring();
    Agent agent = connect_to(server);
    run_episode(agent);
    ASSERT_TRUE(eventually([&] { return last_progress(*server).is_complete; }));
    EXPECT_EQ(last_progress(*server).problem,
              "it has no fallback, which decides at the level 'off': pass one to rl4sys::connect");
}

TEST(Profiles, AnOperatorsOffEndsIt) {
    const auto server = measuring();
    server->order(client::ControlMode::Off, 1);
    Agent agent = connect_to(server, quick_settings(), second);
    run_episode(agent);
    ASSERT_TRUE(eventually([&] { return last_progress(*server).is_complete; }));
    EXPECT_EQ(last_progress(*server).problem, "its policy does not decide, because an operator ordered it off");
}

TEST(Profiles, AClosedAgentWaitsForItsProfile) {
    const auto server = measuring();
    Agent agent = connect_to(server, quick_settings(), second);
    run_episode(agent);
    ASSERT_TRUE(eventually([&] { return server->last_report().profile.has_value(); }));
    agent.close();
    EXPECT_EQ(agent.level(), ClientLevel::Full);
}

}  // namespace
}  // namespace rl4sys::testing::levels
