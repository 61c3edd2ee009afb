#include <gtest/gtest.h>

#include <cmath>

#include "client/fake_server.hpp"

namespace rl4sys::testing {
namespace {

using Rows = std::vector<float>;

/// The choices and the segments of three episodes with five decisions each, together or one by one.
std::pair<std::vector<std::int64_t>, std::set<std::string>> decided(bool together) {
    const auto server = std::make_shared<FakeServer>(small_policy(true));
    Agent agent = connect_to(server);
    std::vector<Episode> open;
    for (int number = 0; number < 3; ++number) {
        open.push_back(agent.episode());
    }
    const std::vector<Rows> seen{{0, 1}, {2, 3}, {4, 5}};
    const std::vector<std::array<std::uint8_t, 3>> allowed{{1, 1, 0}, {0, 1, 1}, {1, 0, 1}};
    std::vector<std::int64_t> choices;
    for (int step = 0; step < 5; ++step) {
        if (together) {
            for (const Action& action : agent.act_many({&open[0], &open[1], &open[2]}, {seen[0], seen[1], seen[2]},
                                                       {allowed[0], allowed[1], allowed[2]})) {
                choices.push_back(action.choice());
            }
        } else {
            for (std::size_t row = 0; row < open.size(); ++row) {
                choices.push_back(open[row].act(seen[row], allowed[row]).choice());
            }
        }
    }
    for (Episode& episode : open) {
        episode.end(Rows{9, 9});
    }
    EXPECT_TRUE(agent.flush());
    std::set<std::string> segments;
    for (const v1::Segment& segment : server->segments()) {
        segments.insert(segment.SerializeAsString());
    }
    return {choices, segments};
}

TEST(ActMany, TheChoicesAndTheRecordAreThoseOfSingleDecisions) {
    EXPECT_EQ(decided(true), decided(false));
}

TEST(ActMany, ANewVersionDecidesForTheNextBatch) {
    const auto server = std::make_shared<FakeServer>();
    Agent agent = connect_to(server);
    Episode one = agent.episode();
    Episode two = agent.episode();
    const Rows good{1, 2};
    ASSERT_TRUE(agent.act_many({&one, &two}, {good, good})[1]);
    server->publish(3.0F);
    ASSERT_TRUE(eventually([&] { return agent.health().version == 1U; }));
    for (const Action& action : agent.act_many({&two, &one}, {good, good})) {
        EXPECT_EQ(action.version(), 1U);
    }
    EXPECT_EQ(agent.health().decisions, 4U);
}

TEST(ActMany, AnEpisodeThatIsNamedTwiceDecidesTwice) {
    Agent agent = connect_to(std::make_shared<FakeServer>());
    Episode one = agent.episode();
    const Rows good{1, 2};
    const std::vector<Action> actions = agent.act_many({&one, &one}, {good, good});
    EXPECT_EQ(actions[0].decision(), 0);
    EXPECT_EQ(actions[1].decision(), 1);
}

TEST(ActMany, AllDecisionsHaveTheTimeThatIsGiven) {
    const auto server = std::make_shared<FakeServer>();
    Agent agent = connect_to(server);
    Episode one = agent.episode();
    Episode two = agent.episode();
    const Rows good{1, 2};
    for (const double now : {10.0, 10.5, 12.0}) {
        for (const Action& action : agent.act_many({&one, &two}, {good, good}, {}, now)) {
            ASSERT_TRUE(action) << action.message();
        }
    }
    EXPECT_EQ(agent.act_many({&one}, {good}, {}, 11.0).front().problem(), Problem::BadTime);
    one.end(good, Ending::Terminated, {}, 13.0);
    two.end(good, Ending::Terminated, {}, 13.0);
    ASSERT_TRUE(agent.flush());
    ASSERT_EQ(server->segments().size(), 2U);
    for (const v1::Segment& segment : server->segments()) {
        Rows elapsed(segment.elapsed().size() / sizeof(float));
        std::memcpy(elapsed.data(), segment.elapsed().data(), segment.elapsed().size());
        EXPECT_EQ(elapsed, (Rows{0.5F, 1.5F, 1.0F}));
    }
}

TEST(ActMany, ARowThatCannotBeUsedConcernsNoOtherEpisode) {
    Agent agent = connect_to(std::make_shared<FakeServer>());
    Episode one = agent.episode();
    Episode two = agent.episode();
    const Rows good{1, 2};
    const Rows bad{NAN, 2};
    const std::vector<Action> actions = agent.act_many({&one, &two}, {bad, good});
    EXPECT_EQ(actions[0].problem(), Problem::BadObservation);
    EXPECT_TRUE(actions[1]);
    EXPECT_EQ(one.decision(), -1);
}

TEST(ActMany, OtherCountsAndEpisodesOfOtherAgentsAreRefused) {
    Agent agent = connect_to(std::make_shared<FakeServer>());
    Agent other = connect_to(std::make_shared<FakeServer>());
    Episode one = agent.episode();
    Episode foreign = other.episode();
    const Rows good{1, 2};
    EXPECT_THROW(agent.act_many({&one}, {}), std::invalid_argument);
    EXPECT_THROW(agent.act_many({&foreign}, {good}), std::invalid_argument);
    EXPECT_TRUE(agent.act_many({}, {}).empty());
}

}  // namespace
}  // namespace rl4sys::testing
