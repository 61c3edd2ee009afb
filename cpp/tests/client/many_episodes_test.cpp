#include <gtest/gtest.h>
#include <malloc.h>

#include "client/fake_server.hpp"
#include "counted_allocations.hpp"

namespace rl4sys::testing {
namespace {

constexpr std::size_t many = 10'000;
const std::vector<float> seen{1, 2, 3, 4, 5, 6, 7, 8};

/// Observes eight numbers, with two hidden layers of 64.
std::shared_ptr<FakeServer> wide_server() {
    PolicySpec spec;
    spec.action = DiscreteAction{4, 0};
    spec.program.inputs = {{"observation", ElementType::Float32, {8}}};
    spec.program.ops = {{"linear", {"r0"}, {"observation"}, {"w0", "b0"}, {}},
                        {"tanh", {"r1"}, {"r0"}, {}, {}},
                        {"linear", {"r2"}, {"r1"}, {"w1", "b1"}, {}},
                        {"tanh", {"r3"}, {"r2"}, {}, {}},
                        {"linear", {"r4"}, {"r3"}, {"w2", "b2"}, {}}};
    spec.program.tensors = {{"w0", {8, 64}}, {"b0", {64}},    {"w1", {64, 64}},
                            {"b1", {64}},    {"w2", {64, 4}}, {"b2", {4}}};
    spec.head.kind = HeadKind::Categorical;
    spec.head.inputs = {"r4"};
    auto server = std::make_shared<FakeServer>(std::move(spec));
    server->limits = {4U << 20, 1000, 1000, 1000};
    return server;
}

std::vector<Episode> open_and_act(Agent& agent) {
    std::vector<Episode> episodes;
    episodes.reserve(many);
    for (std::size_t number = 0; number < many; ++number) {
        episodes.push_back(agent.episode());
        EXPECT_TRUE(episodes.back().act(seen));
        episodes.back().reward(1.0);
    }
    return episodes;
}

TEST(ManyEpisodes, AnOpenEpisodeWithOneStepTakesLessThanTwoKilobytes) {
    Agent agent = connect_to(wide_server());
    ASSERT_TRUE(agent.episode().act(seen));
    const auto before = mallinfo2();
    const std::vector<Episode> episodes = open_and_act(agent);
    const auto after = mallinfo2();
    const std::size_t taken = after.uordblks + after.hblkhd - before.uordblks - before.hblkhd;
    RecordProperty("bytes", static_cast<int>(taken / many));
    EXPECT_LT(taken / many, 2048U);
    EXPECT_EQ(agent.health().open_episodes, many);
}

TEST(ManyEpisodes, EpisodesThatEndedLeaveTheirLanesToLaterOnes) {
    const auto server = wide_server();
    Agent agent = connect_to(server);
    for (int round = 0; round < 3; ++round) {
        for (Episode& episode : open_and_act(agent)) {
            episode.end(seen);
        }
        EXPECT_EQ(agent.health().open_episodes, 0U);
        ASSERT_TRUE(agent.flush());
    }
    std::set<std::uint64_t> lanes;
    for (const v1::Segment& segment : server->segments()) {
        lanes.insert(segment.lane());
    }
    EXPECT_EQ(server->segments().size(), 3 * many);
    EXPECT_EQ(lanes.size(), many);
    EXPECT_TRUE(agent.health().drops.empty());
}

TEST(ManyEpisodes, AnEpisodePerRequestAllocatesNothingInSteadyState) {
    Agent agent = connect_to(wide_server());
    const auto serve = [&](int requests) {
        for (int request = 0; request < requests; ++request) {
            Episode episode = agent.episode();
            static_cast<void>(episode.act(seen));
            episode.reward(1.0);
            episode.end();
        }
    };
    serve(500);
    for (int round = 0; round < 10; ++round) {
        ASSERT_TRUE(agent.flush());
        count_allocations(true);
        serve(100);
        count_allocations(false);
        EXPECT_EQ(counted_allocations(), 0U);
    }
}

}  // namespace
}  // namespace rl4sys::testing
