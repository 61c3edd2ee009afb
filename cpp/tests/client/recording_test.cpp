#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "client/fake_server.hpp"

namespace rl4sys::testing {
namespace {

using Rows = std::vector<float>;

const Rows first{1.0F, 2.0F};
const Rows second{3.0F, 4.0F};
const Rows third{5.0F, 6.0F};

TEST(Recording, AnEpisodeIsStoredCompletely) {
    const auto server = std::make_shared<FakeServer>();
    Agent agent = connect_to(server);
    Episode episode = agent.episode();
    const Action one = episode.act(first);
    ASSERT_TRUE(one) << one.message();
    const auto choice = static_cast<std::uint8_t>(one.choice());
    episode.reward(0.5);
    const auto other = static_cast<std::uint8_t>(episode.act(second).choice());
    episode.reward(1.0);
    episode.reward(0.25);
    episode.end(third, Ending::Truncated);
    ASSERT_TRUE(agent.flush());
    const auto segments = server->segments();
    ASSERT_EQ(segments.size(), 1U);
    const v1::Segment& segment = segments[0];
    EXPECT_EQ(segment.episode(), 100U);
    EXPECT_EQ(segment.start(), 0U);
    EXPECT_EQ(segment.ending(), v1::ENDING_TRUNCATED);
    EXPECT_EQ(column<float>(segment, 0), (Rows{1, 2, 3, 4, 5, 6}));
    EXPECT_EQ(column<std::uint8_t>(segment, 1), (std::vector<std::uint8_t>{choice, other}));
    EXPECT_EQ(column<float>(segment, 2), (Rows{0.5F, 1.25F}));
    EXPECT_LT(column<float>(segment, 3)[0], 0.0F) << "the log-probability";
}

TEST(Recording, AFullSegmentIsCutAndTheNextStartsWithItsFinalObservation) {
    const auto server = std::make_shared<FakeServer>();
    ClientSettings settings = quick_settings();
    settings.max_segment_length = 2;
    Agent agent = connect_to(server, settings);
    Episode episode = agent.episode();
    for (int step = 0; step < 5; ++step) {
        ASSERT_TRUE(episode.act(Rows{static_cast<float>(step), 0}));
        episode.reward(step);
    }
    episode.end(Rows{5, 0});
    ASSERT_TRUE(agent.flush());
    const auto segments = server->segments();
    ASSERT_EQ(segments.size(), 3U);
    EXPECT_EQ(column<float>(segments[1], 0), (Rows{2, 0, 3, 0, 4, 0}));
    EXPECT_EQ(segments[1].start(), 2U);
    EXPECT_EQ(segments[1].ending(), v1::ENDING_CONTINUES);
    EXPECT_EQ(column<float>(segments[2], 2), Rows{4});
    EXPECT_EQ(segments[2].ending(), v1::ENDING_TERMINATED);
}

TEST(Recording, NewWeightsCutASegment) {
    const auto server = std::make_shared<FakeServer>();
    Agent agent = connect_to(server);
    Episode episode = agent.episode();
    ASSERT_TRUE(episode.act(first));
    server->publish(0.5F);
    ASSERT_TRUE(eventually([&] { return agent.health().version == 1U; }));
    ASSERT_TRUE(episode.act(second));
    episode.end(third);
    ASSERT_TRUE(agent.flush());
    const auto segments = server->segments();
    ASSERT_EQ(segments.size(), 2U);
    EXPECT_EQ(segments[0].policy_version(), 0U);
    EXPECT_EQ(column<float>(segments[0], 0), (Rows{1, 2, 3, 4}));
    EXPECT_EQ(segments[1].policy_version(), 1U);
    EXPECT_EQ(segments[1].start(), 1U);
}

TEST(Recording, ATerminationNeedsNoLastObservationAndATruncationWithoutOneLosesOneDecision) {
    const auto server = std::make_shared<FakeServer>();
    Agent agent = connect_to(server);
    Episode terminated = agent.episode();
    terminated.act(first);
    terminated.end();
    Episode truncated = agent.episode();
    truncated.act(first);
    truncated.act(second);
    truncated.end({}, Ending::Truncated);
    ASSERT_TRUE(agent.flush());
    const auto segments = server->segments();
    ASSERT_EQ(segments.size(), 2U);
    EXPECT_EQ(column<float>(segments[0], 0), (Rows{1, 2, 1, 2}));
    EXPECT_EQ(segments[1].steps(), 1U);
    EXPECT_EQ(agent.health().drops.at("no_final_observation"), 1U);
}

TEST(Recording, OpenEpisodesHaveTheirOwnLanesWhichAreReused) {
    const auto server = std::make_shared<FakeServer>();
    Agent agent = connect_to(server);
    Episode one = agent.episode();
    Episode two = agent.episode();
    one.act(first);
    two.act(second);
    EXPECT_EQ(agent.health().open_episodes, 2U);
    one.end(third);
    Episode three = agent.episode();
    three.act(first);
    EXPECT_EQ(one.act(first).problem(), Problem::EpisodeEnded) << "another episode has the lane";
    three.end(third);
    two.end(third);
    ASSERT_TRUE(agent.flush());
    std::set<std::pair<std::uint64_t, std::uint64_t>> names;
    for (const auto& segment : server->segments()) {
        names.emplace(segment.lane(), segment.episode());
    }
    EXPECT_EQ(names, (std::set<std::pair<std::uint64_t, std::uint64_t>>{{0, 100}, {0, 101}, {1, 100}}));
    EXPECT_EQ(agent.health().open_episodes, 0U);
}

TEST(Recording, ABadObservationIsRefusedAndNotRecorded) {
    const auto server = std::make_shared<FakeServer>();
    Agent agent = connect_to(server);
    Episode episode = agent.episode();
    EXPECT_EQ(episode.act(Rows{1}).problem(), Problem::BadObservation);
    EXPECT_EQ(episode.act(Rows{1, NAN}).problem(), Problem::BadObservation);
    EXPECT_EQ(episode.act({{"queue", first}}).problem(), Problem::BadObservation);
    EXPECT_EQ(episode.act(first, std::array<std::uint8_t, 3>{1, 1, 1}).problem(), Problem::BadObservation);
    const Action action = episode.act(Rows{1, 2, 3});
    EXPECT_NE(action.message().find("observation: float32[2]"), std::string::npos) << action.message();
    EXPECT_THROW(action.choice(), NoAction);
    EXPECT_EQ(episode.decision(), -1);
    EXPECT_TRUE(episode.act(std::array<double, 2>{1.0, 2.0})) << "doubles fit";
    EXPECT_TRUE(episode.act(std::vector<int>{1, 2})) << "whole numbers fit";
    EXPECT_TRUE(episode.act({{"observation", first}})) << "its name may be given";
}

TEST(Recording, AMaskForbidsChoicesAndIsRecorded) {
    const auto server = std::make_shared<FakeServer>(small_policy(true));
    Agent agent = connect_to(server);
    Episode episode = agent.episode();
    for (int step = 0; step < 20; ++step) {
        EXPECT_EQ(episode.act(first, std::array<bool, 3>{false, true, false}).choice(), 1);
    }
    EXPECT_EQ(episode.act(first, std::array<int, 3>{0, 0, 0}).problem(), Problem::NothingAllowed);
    EXPECT_TRUE(episode.act({{"observation", first}, {"action_mask", std::array<float, 3>{0, 0, 1}}}));
    EXPECT_TRUE(episode.act(first)) << "without a mask all is allowed";
    episode.end(second);
    ASSERT_TRUE(agent.flush());
    const auto masks = column<std::uint8_t>(server->segments()[0], 1);
    ASSERT_EQ(masks.size(), 3U * 23);
    EXPECT_EQ(std::vector<std::uint8_t>(masks.begin(), masks.begin() + 3), (std::vector<std::uint8_t>{0, 1, 0}));
    EXPECT_EQ(std::vector<std::uint8_t>(masks.end() - 3, masks.end()), (std::vector<std::uint8_t>{1, 1, 1}));
}

TEST(Recording, ASegmentFitsIntoOneMessage) {
    const auto server = std::make_shared<FakeServer>();
    server->limits = {64U << 10, 1U << 16, 64, 256};
    ClientSettings settings = quick_settings();
    settings.max_segment_length = 10'000;
    Agent agent = connect_to(server, settings);
    Episode episode = agent.episode();
    for (int step = 0; step < 6'000; ++step) {
        episode.act(std::vector<float>{1.0F, 2.0F});
    }
    episode.end();
    ASSERT_TRUE(agent.flush());
    EXPECT_TRUE(agent.health().drops.empty());
    std::uint64_t steps = 0;
    for (const v1::Segment& segment : server->segments()) {
        steps += segment.steps();
    }
    EXPECT_EQ(steps, 6'000U);
}

TEST(Recording, AMaskThatForbidsEverythingLosesNoCompleteSegment) {
    const auto server = std::make_shared<FakeServer>(small_policy(true));
    ClientSettings settings = quick_settings();
    settings.max_segment_length = 1;
    Agent agent = connect_to(server, settings);
    Episode episode = agent.episode();
    ASSERT_TRUE(episode.act(first));
    EXPECT_EQ(episode.act(second, std::array<bool, 3>{}).problem(), Problem::NothingAllowed);
    ASSERT_TRUE(episode.act(second));
    episode.end(third);
    ASSERT_TRUE(agent.flush());
    const auto segments = server->segments();
    ASSERT_EQ(segments.size(), 2U);
    EXPECT_EQ(column<float>(segments[0], 0), (Rows{1, 2, 3, 4}));
    EXPECT_EQ(column<float>(segments[1], 0), (Rows{3, 4, 5, 6}));
}

TEST(Recording, APolicyWithAnotherSchemaTruncatesTheRecordedSteps) {
    const auto server = std::make_shared<FakeServer>();
    Agent agent = connect_to(server);
    Episode episode = agent.episode();
    episode.act(first);
    episode.act(second);
    server->set_down(true);
    server->spec = small_policy(true);
    server->schema_hash = std::string(32, 't');
    server->forget_sessions();
    server->publish(0.1F);
    server->set_down(false);
    ASSERT_TRUE(eventually([&] { return agent.health().version == 1U; }));
    ASSERT_TRUE(episode.act(third, std::array<bool, 3>{true, false, false}));
    episode.end(first);
    ASSERT_TRUE(agent.flush());
    const auto segments = server->segments();
    ASSERT_EQ(segments.size(), 2U);
    EXPECT_EQ(segments[0].ending(), v1::ENDING_TRUNCATED);
    EXPECT_EQ(segments[0].steps(), 1U);
    EXPECT_EQ(segments[1].start(), 2U);
    EXPECT_EQ(agent.health().drops.at("schema_changed"), 1U);
}

TEST(Recording, SegmentsAreCompressedOnlyForAServerThatAcceptsItAndWhereThatIsSmaller) {
    for (const bool accepts : {false, true}) {
        const auto server = std::make_shared<FakeServer>();
        server->accepts_zstd = accepts;
        Agent agent = connect_to(server);
        Episode episode = agent.episode();
        for (int step = 0; step < 60; ++step) {
            ASSERT_TRUE(episode.act(first));
            episode.reward(1.0);
        }
        episode.end(first);
        // Of one step there is nothing to save.
        Episode small = agent.episode();
        ASSERT_TRUE(small.act(first));
        small.end(first);
        ASSERT_TRUE(agent.flush());
        const auto segments = server->segments();
        ASSERT_EQ(segments.size(), 2U);
        EXPECT_EQ(segments[0].steps(), 60U);
        EXPECT_EQ(column<float>(segments[0], 2), Rows(60, 1.0F));
        EXPECT_EQ(server->saved_bytes.size(), accepts ? 1U : 0U);
        EXPECT_TRUE(!accepts || server->saved_bytes.front() > 400U);
    }
}

/// One-step episodes; the k-th earns k. They wait for each other until they are flushed.
std::vector<float> rewards_of_bandits(const std::shared_ptr<FakeServer>& server, int count) {
    ClientSettings settings = quick_settings();
    settings.send_interval = 30.0;
    Agent agent = connect_to(server, settings);
    for (int number = 0; number < count; ++number) {
        Episode episode = agent.episode();
        EXPECT_TRUE(episode.act(first));
        episode.reward(static_cast<float>(number));
        episode.end();
    }
    EXPECT_TRUE(agent.flush());
    EXPECT_EQ(agent.health().acknowledged, static_cast<std::uint64_t>(count));
    EXPECT_EQ(agent.health().backlog, 0U);
    EXPECT_TRUE(agent.health().drops.empty());
    std::vector<float> rewards;
    for (const v1::Segment& segment : server->segments()) {
        rewards.push_back(column<float>(segment, 2)[0]);
    }
    return rewards;
}

TEST(Recording, ShortEpisodesThatWaitTogetherAreSentAsOne) {
    std::vector<float> expected(200);
    std::iota(expected.begin(), expected.end(), 0.0F);
    const auto server = std::make_shared<FakeServer>();
    server->limits.max_pack_segments = 1000;
    EXPECT_EQ(rewards_of_bandits(server, 200), expected);
    ASSERT_FALSE(server->packs.empty());
    EXPECT_GT(*std::max_element(server->packs.begin(), server->packs.end()), 50U);
    const auto old_server = std::make_shared<FakeServer>();
    EXPECT_EQ(rewards_of_bandits(old_server, 200), expected);
    EXPECT_TRUE(old_server->packs.empty()) << "a server that accepts no packs gets each segment alone";
}

}  // namespace
}  // namespace rl4sys::testing
