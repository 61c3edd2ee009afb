#include <gtest/gtest.h>

#include <cmath>

#include "client/fake_server.hpp"

namespace rl4sys::testing {
namespace {

using Rows = std::vector<float>;

std::shared_ptr<FakeServer> accepting(bool masked = false) {
    auto server = std::make_shared<FakeServer>(small_policy(masked));
    server->accepts_incumbent = true;
    return server;
}

void take(Episode& episode, int first, int after) {
    for (int step = first; step < after; ++step) {
        episode.took(Rows{static_cast<float>(step), 0}, step % 3);
        episode.reward(step);
    }
}

std::string refusal(Episode& episode, const FallbackAction& action, ArrayView mask = {}) {
    try {
        episode.took(Rows{0, 0}, action, mask);
    } catch (const std::invalid_argument& error) {
        return error.what();
    }
    return "";
}

TEST(Incumbent, WhatTheSystemDidIsRecordedBetweenDecisionsOfThePolicy) {
    const auto server = accepting();
    Agent agent = connect_to(server);
    Episode episode = agent.episode();
    take(episode, 0, 3);
    ASSERT_TRUE(episode.act(Rows{3, 0}));
    episode.reward(3);
    take(episode, 4, 6);
    episode.end(Rows{6, 0});
    ASSERT_TRUE(agent.flush());
    const auto segments = server->segments();
    ASSERT_EQ(segments.size(), 3U);
    EXPECT_EQ(segments[0].decided_by(), v1::DECIDED_BY_INCUMBENT);
    EXPECT_EQ(segments[0].ending(), v1::ENDING_CONTINUES);
    EXPECT_EQ(column<std::uint8_t>(segments[0], 1), (std::vector<std::uint8_t>{0, 1, 2}));
    EXPECT_EQ(column<float>(segments[0], 2), (Rows{0, 1, 2}));
    EXPECT_EQ(column<float>(segments[0], 3), (Rows{0, 0, 0})) << "an incumbent has no log-probabilities";
    EXPECT_EQ(segments[1].decided_by(), v1::DECIDED_BY_UNSPECIFIED);
    EXPECT_EQ(segments[2].decided_by(), v1::DECIDED_BY_INCUMBENT);
    EXPECT_EQ(segments[2].start(), 4U);
    EXPECT_EQ(column<float>(segments[2], 0), (Rows{4, 0, 5, 0, 6, 0}));
    EXPECT_EQ(segments[2].ending(), v1::ENDING_TERMINATED);
}

TEST(Incumbent, AServerThatDoesNotKnowItIsNotSentAny) {
    const auto server = std::make_shared<FakeServer>();
    Agent agent = connect_to(server);
    Episode episode = agent.episode();
    take(episode, 0, 2);
    ASSERT_TRUE(episode.act(Rows{2, 0}));
    episode.end(Rows{3, 0});
    ASSERT_TRUE(agent.flush());
    ASSERT_EQ(server->segments().size(), 1U);
    EXPECT_EQ(server->segments()[0].start(), 2U);
    EXPECT_EQ(agent.health().unrecorded_decisions, 2U);
}

TEST(Incumbent, ABadActionIsRefusedInOneSentenceAndChangesNothing) {
    const auto server = accepting(true);
    Agent agent = connect_to(server);
    Episode episode = agent.episode();
    EXPECT_EQ(refusal(episode, 3), "Got 3; expected a whole number from 0 to 2.");
    EXPECT_EQ(refusal(episode, std::vector<float>{0.5F}),
              "Got 0 choices and 1 number; expected 1 choice and 0 numbers.");
    const std::vector<std::uint8_t> mask{1, 1, 0};
    EXPECT_EQ(refusal(episode, 2, mask), "Got choice 2, which the mask excludes. Pass the mask it was taken under.");
    EXPECT_EQ(refusal(episode, 1, mask), "");
    EXPECT_EQ(episode.decision(), 0);
    episode.end(Rows{1, 0});
    EXPECT_THROW(episode.took(Rows{0, 0}, 1), std::logic_error);
    ASSERT_TRUE(agent.flush());
    EXPECT_EQ(server->segments().at(0).steps(), 1U);
}

TEST(Incumbent, ABadObservationIsRefusedOrLeftOutAsTheSettingsSay) {
    const Rows bad{std::nanf(""), 0};
    Agent strict = connect_to(accepting());
    Episode refused = strict.episode();
    EXPECT_THROW(refused.took(bad, 1), std::invalid_argument);
    const auto server = accepting();
    Agent agent = connect_to(server, quick_settings(), [](const Observation&) { return 2; });
    Episode episode = agent.episode();
    take(episode, 0, 2);
    episode.took(bad, 1);
    take(episode, 3, 5);
    episode.end(Rows{5, 0});
    ASSERT_TRUE(agent.flush());
    const auto segments = server->segments();
    ASSERT_EQ(segments.size(), 2U);
    EXPECT_EQ(segments[1].start(), 3U);
}

}  // namespace
}  // namespace rl4sys::testing
