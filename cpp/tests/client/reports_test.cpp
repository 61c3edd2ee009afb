// Reports to the server, what its replies change, and how episodes are thinned.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "client/decision_times.hpp"
#include "client/fake_server.hpp"
#include "client/thinning.hpp"

namespace rl4sys::testing::reports {
namespace {

using client::ControlMode;
using client::DecisionTimes;
using client::Thinning;

const std::vector<float> seen{1.0F, 2.0F};

std::shared_ptr<FakeServer> reporting() {
    const auto server = std::make_shared<FakeServer>();
    server->report_seconds = 0.01;
    server->lineage = "a";
    return server;
}

std::shared_ptr<FakeServer> asking_for(double share) {
    const auto server = std::make_shared<FakeServer>();
    server->record_share = share;
    return server;
}

void run_episodes(Agent& agent, int count, int length = 1) {
    for (int number = 0; number < count; ++number) {
        Episode episode = agent.episode();
        for (int step = 0; step < length; ++step) {
            ASSERT_TRUE(episode.act(seen));
            episode.reward(1.0);
        }
        episode.end(seen);
    }
}

TEST(Reports, AClientReportsItsHealth) {
    const auto server = reporting();
    Agent agent = connect_to(server);
    run_episodes(agent, 3);
    const Episode open = agent.episode();
    ASSERT_TRUE(eventually([&] { return server->last_report().report.open_episodes == 1; }));
    const wire::ReportRequest request = server->last_report();
    const wire::ClientReport& report = request.report;
    EXPECT_EQ(request.epoch, server->last_join.epoch);
    EXPECT_EQ(report.version, 0U);
    EXPECT_EQ(report.lineage, "a");
    EXPECT_EQ(report.mode, "explore");
    EXPECT_EQ(report.decisions, 3U);
    EXPECT_EQ(std::accumulate(report.decision_time.begin(), report.decision_time.end(), std::uint64_t{0}), 3U);
    EXPECT_GT(report.uptime_seconds, 0.0);
}

TEST(Reports, AReplyIsObeyed) {
    const auto server = reporting();
    server->warning = "Another program uses the client id 'tester'.";
    const Agent agent = connect_to(server, quick_settings(), [](const Observation&) { return 1; });
    server->change([&] { server->record_share = 0.25; });
    server->order(ControlMode::Off, 5);
    ASSERT_TRUE(eventually([&] { return agent.health().record_share == 0.25 && !agent.health().warning.empty(); }));
    EXPECT_TRUE(eventually([&] { return agent.health().off == "control"; }));
    EXPECT_EQ(agent.health().warning, "Another program uses the client id 'tester'.");
    server->change([&] { server->warning.clear(); });
    EXPECT_TRUE(eventually([&] { return agent.health().warning.empty(); }));
    EXPECT_TRUE(eventually([&] { return server->last_report().report.off == "control"; }));
    EXPECT_EQ(server->last_report().report.control_sequence, 5U);
}

TEST(Reports, AServerThatTakesNoReportsIsAskedOnce) {
    const auto server = reporting();
    server->takes_reports = false;
    Agent agent = connect_to(server);
    const auto calls = [&] {
        int count = 0;
        server->change([&] { count = server->report_calls; });
        return count;
    };
    ASSERT_TRUE(eventually([&] { return calls() == 1; }));
    run_episodes(agent, 20);
    ASSERT_TRUE(agent.flush());
    EXPECT_EQ(calls(), 1);
    EXPECT_TRUE(agent.health().connected);
}

TEST(Reports, ALostSessionIsJoinedAgainAfterAReport) {
    const auto server = reporting();
    const Agent agent = connect_to(server);
    ASSERT_TRUE(server->wait_for_reports(1));
    server->forget_sessions();
    ASSERT_TRUE(server->wait_for_joins(2));
    std::size_t count = 0;
    server->change([&] { count = server->reports.size(); });
    EXPECT_TRUE(server->wait_for_reports(count + 1));
}

TEST(Reports, AnotherLineageIsReported) {
    const auto server = reporting();
    const Agent agent = connect_to(server);
    server->change([&] { server->lineage = "b"; });
    server->forget_sessions();
    ASSERT_TRUE(eventually([&] { return server->last_report().report.off == "other_lineage"; }));
    EXPECT_EQ(server->last_report().report.lineage, "a");
}

TEST(Reports, EpisodesAreThinnedEvenly) {
    for (const double share : {0.5, 0.3, 0.125}) {
        Thinning thinning;
        int kept = 0;
        int last = 0;
        for (int episode = 0; episode < 240; ++episode) {
            if (thinning.keeps(share)) {
                EXPECT_LE(episode - last, static_cast<int>(std::lround(1 / share)) + 1);
                last = episode;
                ++kept;
            }
        }
        EXPECT_NEAR(kept, 240 * share, 1.01);
    }
}

TEST(Reports, ClientsOfOneLearnerBeginAtDifferentTurns) {
    EXPECT_DOUBLE_EQ(client::fleet_phase("a"), 0xE8B7BE43U / 4294967296.0);
    int first = 0;
    for (int number = 0; number < 1000; ++number) {
        Thinning thinning(client::fleet_phase("client-" + std::to_string(number)));
        first += thinning.keeps(0.1) ? 1 : 0;
    }
    EXPECT_NEAR(first, 100, 30);
}

TEST(Reports, ThinnedEpisodesActAndAreNotRecorded) {
    const auto server = asking_for(0.25);
    Agent agent = connect_to(server);
    run_episodes(agent, 40, 3);
    ASSERT_TRUE(agent.flush());
    const Health health = agent.health();
    EXPECT_EQ(health.decisions, 120U);
    EXPECT_EQ(health.thinned_episodes, 30U);
    EXPECT_EQ(health.unrecorded_decisions, 90U);
    EXPECT_TRUE(health.drops.empty());
    EXPECT_EQ(health.late_rewards, 0U);
    EXPECT_EQ(server->segments().size(), 10U);
}

TEST(Reports, TheShareInAReplyToPushCounts) {
    const auto server = asking_for(0.5);
    Agent agent = connect_to(server);
    EXPECT_EQ(agent.health().record_share, 0.5);
    server->change([&] { server->record_share = 0.0; });
    run_episodes(agent, 4);
    ASSERT_TRUE(agent.flush());
    EXPECT_EQ(agent.health().record_share, 1.0);
}

TEST(Reports, TheShareThatComesWithAVersionCounts) {
    const auto server = asking_for(0.5);
    const Agent agent = connect_to(server);
    server->change([&] { server->record_share = 0.125; });
    server->publish(0.5F);
    EXPECT_TRUE(eventually([&] { return agent.health().record_share == 0.125; }));
}

TEST(Reports, AnEndlessEpisodeIsThinnedBySpans) {
    const auto server = asking_for(0.5);
    Agent agent = connect_to(server);
    Episode episode = agent.episode();
    for (int step = 0; step < 8 * 1024; ++step) {
        ASSERT_TRUE(episode.act(std::vector<float>{static_cast<float>(step), 0.0F}));
    }
    episode.end(std::vector<float>{8 * 1024.0F, 0.0F});
    ASSERT_TRUE(agent.flush());
    EXPECT_EQ(agent.health().thinned_episodes, 4U);
    std::size_t steps = 0;
    for (const v1::Segment& segment : server->segments()) {
        const std::vector<float> rows = column<float>(segment, 0);
        const std::size_t count = rows.size() / 2 - 1;
        steps += count;
        EXPECT_EQ(rows.front(), static_cast<float>(segment.start()));
        EXPECT_EQ(rows[2 * count], static_cast<float>(segment.start() + count));
        const bool is_last_of_span = (segment.start() + count) % 1024 == 0;
        EXPECT_EQ(segment.ending(), is_last_of_span ? v1::ENDING_TRUNCATED : v1::ENDING_CONTINUES);
    }
    EXPECT_EQ(steps, 4U * 1024);
}

TEST(Reports, TimesAreCountedInPowersOfTwo) {
    DecisionTimes times;
    for (const std::uint64_t microseconds : {0, 1, 3, 4, 1000, 1'000'000'000}) {
        times.add(0, 1000 * microseconds);
    }
    const std::vector<std::uint64_t> counts = times.counts();
    EXPECT_EQ(std::vector<std::uint64_t>(counts.begin(), counts.begin() + 4), (std::vector<std::uint64_t>(4, 1)));
    EXPECT_EQ(counts[10], 1U);
    EXPECT_EQ(counts.back(), 1U);
    EXPECT_EQ(counts.size(), 24U);
}

}  // namespace
}  // namespace rl4sys::testing::reports
