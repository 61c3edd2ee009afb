#include <gtest/gtest.h>

#include <cmath>

#include "client/answer_wait.hpp"
#include "client/fake_server.hpp"
#include "wire/decisions.hpp"

namespace rl4sys::testing {
namespace {

using Rows = std::vector<float>;
using client::AnswerWait;

/// With one memory that the observation is added to.
PolicySpec remembering_policy() {
    PolicySpec spec = small_policy();
    spec.program.ops = {{"add", {"sum"}, {"observation", "memory"}, {}, {}},
                        {"linear", {"r0"}, {"sum"}, {"w", "b"}, {}}};
    spec.program.carry = {{"memory", {2}, "sum"}};
    return spec;
}

ClientSettings asking() {
    ClientSettings settings = quick_settings();
    settings.decide = DecisionPlace::Server;
    settings.decide_timeout = 5.0;
    return settings;
}

Fallback two() {
    return [](const Observation&) { return 2; };
}

Agent connect_asking(const std::shared_ptr<FakeServer>& server) {
    server->limits.max_act_rows = 64;
    server->accepts_fallback = true;
    return connect_to(server, asking(), two());
}

/// The choices and the segments of two episodes with a hundred decisions each.
std::pair<std::vector<std::int64_t>, std::vector<std::string>> recorded(const PolicySpec& spec,
                                                                        const ClientSettings& settings) {
    const auto server = std::make_shared<FakeServer>(spec);
    Agent agent = connect_to(server, settings, two());
    std::vector<std::int64_t> choices;
    for (int number = 0; number < 2; ++number) {
        Episode episode = agent.episode();
        for (int step = 0; step < 100; ++step) {
            choices.push_back(episode.act(Rows{std::sin(0.1F * static_cast<float>(step)), 0.5F}).choice());
            episode.reward(step);
        }
        episode.end(Rows{0, 0});
    }
    EXPECT_TRUE(agent.flush());
    std::vector<std::string> segments;
    for (const auto& [key, bytes] : server->stored) {
        segments.push_back(bytes);
    }
    EXPECT_EQ(server->pulls > 0, settings.decide == DecisionPlace::Local);
    EXPECT_EQ(server->last_join.ops.empty(), settings.decide == DecisionPlace::Server);
    return {choices, segments};
}

TEST(ServerDecisions, AreRecordedWithTheBytesOfALocalClient) {
    for (const PolicySpec& spec : {small_policy(), remembering_policy()}) {
        const auto [choices, segments] = recorded(spec, asking());
        EXPECT_EQ(recorded(spec, quick_settings()), std::pair(choices, segments));
        EXPECT_EQ(choices.size(), 200U);
        EXPECT_GT(segments.size(), 1U);
    }
}

TEST(ServerDecisions, AnotherVersionCutsTheSegment) {
    const auto server = std::make_shared<FakeServer>(remembering_policy());
    Agent agent = connect_asking(server);
    Episode episode = agent.episode();
    episode.act(Rows{1, 1});
    episode.act(Rows{2, 2});
    server->publish(0.5F);
    EXPECT_EQ(episode.act(Rows{3, 3}).version(), 1U);
    episode.end(Rows{4, 4});
    ASSERT_TRUE(agent.flush());
    const auto segments = server->segments();
    ASSERT_EQ(segments.size(), 2U);
    EXPECT_EQ(segments[0].policy_version(), 0U);
    EXPECT_EQ(segments[0].steps(), 2U);
    EXPECT_EQ(segments[1].policy_version(), 1U);
    EXPECT_EQ(column<float>(segments[1], 4), (Rows{3, 3})) << "the memory before its first step";
}

TEST(ServerDecisions, TheFallbackDecidesWhereTheServerDoesNot) {
    for (const wire::Code code : {wire::Code::DeadlineExceeded, wire::Code::Unavailable, wire::Code::Internal}) {
        const auto server = std::make_shared<FakeServer>();
        Agent agent = connect_asking(server);
        Episode episode = agent.episode();
        ASSERT_FALSE(episode.act(Rows{0, 0}).is_fallback());
        server->change([&] { server->refuse_acts = code; });
        for (int step = 1; step < 51; ++step) {
            const Action action = episode.act(Rows{1, 1});
            ASSERT_TRUE(action.is_fallback());
            ASSERT_EQ(action.choice(), 2);
        }
        EXPECT_EQ(agent.health().unanswered_decisions, 50U);
        EXPECT_EQ(agent.health().fallback_decisions, 50U);
        episode.end(Rows{0, 0});
        ASSERT_TRUE(agent.flush());
        const auto segments = server->segments();
        ASSERT_EQ(segments.size(), 2U);
        EXPECT_EQ(segments[1].decided_by(), v1::DECIDED_BY_FALLBACK);
        EXPECT_EQ(segments[1].steps(), 50U);
    }
}

TEST(ServerDecisions, AServerThatIsAwayIsAskedAgainAfterGrowingPauses) {
    double now = 0.0;
    AnswerWait wait(
        client::random_source(1), [&] { return now; }, 0.1);
    int asked = 0;
    for (int tick = 0; tick < 10'000; ++tick) {
        now = tick / 1000.0;
        if (wait.may_ask()) {
            ++asked;
            wait.failed("away");
        }
    }
    EXPECT_GE(asked, 5);
    EXPECT_LE(asked, 15);
    now = 100.0;
    EXPECT_TRUE(wait.may_ask()) << "one thread asks";
    EXPECT_FALSE(wait.may_ask()) << "the others wait for what it finds";
    wait.answered();
    EXPECT_TRUE(wait.may_ask());
    EXPECT_TRUE(wait.may_ask());
}

TEST(ServerDecisions, ALostSessionIsJoinedAgain) {
    const auto server = std::make_shared<FakeServer>();
    Agent agent = connect_asking(server);
    Episode episode = agent.episode();
    episode.act(Rows{0, 0});
    server->forget_sessions();
    EXPECT_TRUE(eventually([&] { return !episode.act(Rows{0, 0}).is_fallback(); }));
    EXPECT_GE(server->joins, 2);
}

TEST(ServerDecisions, ManyEpisodesAreDecidedByOneQuestion) {
    const auto server = std::make_shared<FakeServer>(remembering_policy());
    const auto apart = std::make_shared<FakeServer>(remembering_policy());
    Agent agent = connect_asking(server);
    Agent other = connect_asking(apart);
    std::vector<Episode> together;
    std::vector<Episode> alone;
    for (int number = 0; number < 3; ++number) {
        together.push_back(agent.episode());
        alone.push_back(other.episode());
    }
    together[0].act(Rows{1, 0});
    alone[0].act(Rows{1, 0});
    for (int step = 0; step < 3; ++step) {
        const Rows row{static_cast<float>(step), 1};
        const auto actions = agent.act_many({&together[0], &together[2]}, {row, row});
        EXPECT_EQ(actions[0].choice(), alone[0].act(row).choice());
        EXPECT_EQ(actions[1].choice(), alone[2].act(row).choice());
    }
    ASSERT_EQ(server->acts.size(), 4U);
    EXPECT_EQ(server->acts[1].lanes, (std::vector<std::uint64_t>{0, 2}));
    EXPECT_EQ(server->acts[1].steps, (std::vector<std::uint64_t>{1, 0}));
}

TEST(ServerDecisions, ARowThatThePolicyCannotUseGoesToTheFallbackAlone) {
    const auto server = std::make_shared<FakeServer>();
    server->set_version(1, 1e30F);
    Agent agent = connect_asking(server);
    Episode one = agent.episode();
    Episode other = agent.episode();
    const auto actions = agent.act_many({&one, &other}, {Rows{1e30F, 0}, Rows{0, 0}});
    EXPECT_TRUE(actions[0].is_fallback());
    EXPECT_FALSE(actions[1].is_fallback());
    EXPECT_EQ(agent.health().bad_inputs, 1U);
    EXPECT_EQ(agent.health().unanswered_decisions, 0U);
}

TEST(ServerDecisions, AnOrderToTurnThePolicyOffIsObeyedWithoutAsking) {
    const auto server = std::make_shared<FakeServer>();
    Agent agent = connect_asking(server);
    Episode episode = agent.episode();
    server->order(client::ControlMode::Off, 1);
    ASSERT_TRUE(eventually([&] { return agent.health().off == "control"; }));
    EXPECT_TRUE(episode.act(Rows{0, 0}).is_fallback());
    EXPECT_TRUE(server->acts.empty());
}

TEST(ServerDecisions, AfterAnOrderToFreezeAndToFollowTheServerStillDecides) {
    const auto server = std::make_shared<FakeServer>();
    Agent agent = connect_asking(server);
    server->order(client::ControlMode::Frozen, 1);
    ASSERT_TRUE(eventually([&] { return agent.health().control_sequence == 1; }));
    server->order(client::ControlMode::Follow, 2);
    server->publish(0.5F);
    EXPECT_TRUE(eventually([&] { return agent.health().version == 1U; }));
    EXPECT_FALSE(agent.episode().act(Rows{0, 0}).is_fallback());
    EXPECT_EQ(server->pulls, 0);
}

TEST(ServerDecisions, TheyNeedAFallbackForTheTimeThatTheServerIsAway) {
    EXPECT_THROW(connect_to(std::make_shared<FakeServer>(), asking()), SettingsError);
}

TEST(ServerDecisions, WithoutASeedEveryStartBeginsAtAnotherStep) {
    const auto server = std::make_shared<FakeServer>();
    ClientSettings settings = asking();
    settings.seed.reset();
    Agent agent = connect_to(server, settings, two());
    Episode episode = agent.episode();
    episode.act(Rows{0, 0});
    episode.act(Rows{0, 0});
    EXPECT_NE(server->acts[0].step, 0U);
    EXPECT_EQ(server->acts[1].step, server->acts[0].step + 1);
}

TEST(ServerDecisions, TheSettingsAreReadFromEveryStyleOfConfig) {
    for (const char* text : {R"({"client_id": "a", "decide": "server", "decide_timeout": 0.25})",
                             R"({"algorithm_name": "PPO", "decide": "server", "decide_timeout": 0.25})"}) {
        const ClientSettings settings = parse_settings(text);
        EXPECT_EQ(settings.decide, DecisionPlace::Server);
        EXPECT_EQ(settings.decide_timeout, 0.25);
    }
    EXPECT_THROW(parse_settings(R"({"decide": "serve"})"), SettingsError);
}

TEST(ServerDecisions, AReplyThatBreaksTheSchemaIsRefused) {
    const wire::SegmentFormat form = wire::format_of(small_policy());
    const wire::ActReply good{1, "\2", {std::string(4, '\0')}, {}};
    EXPECT_EQ(wire::decode_decisions(form, good, 1)[0].choices, (std::vector<std::int64_t>{2}));
    for (const wire::ActReply& bad : {wire::ActReply{1, "\3", good.extras, {}}, wire::ActReply{1, "", good.extras, {}},
                                      wire::ActReply{1, "\2", {}, {}}, wire::ActReply{1, "\2", {"\0"}, {}},
                                      wire::ActReply{1, "\2", good.extras, {"x"}}}) {
        EXPECT_THROW(wire::decode_decisions(form, bad, 1), wire::ContractViolation);
    }
}

}  // namespace
}  // namespace rl4sys::testing
