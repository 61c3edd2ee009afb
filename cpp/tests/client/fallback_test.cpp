#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "client/action_adapter.hpp"
#include "client/fake_server.hpp"

namespace rl4sys::testing {
namespace {

using Rows = std::vector<float>;
using client::ActionAdapter;
using client::ActionValues;

void act(Episode& episode, int first, int after) {
    for (int step = first; step < after; ++step) {
        const Action action = episode.act(Rows{static_cast<float>(step), 0});
        ASSERT_TRUE(action) << action.message();
        episode.reward(step);
    }
}

/// Three decisions of the policy, two while it is off, two of the policy.
std::vector<v1::Segment> recorded_around_an_order(const std::shared_ptr<FakeServer>& server) {
    Agent agent = connect_to(server, quick_settings(), [](const Observation&) { return 2; });
    const auto obeys = [&](client::ControlMode mode, std::uint64_t sequence) {
        server->order(mode, sequence);
        return eventually([&] { return agent.health().control_sequence == sequence; });
    };
    Episode episode = agent.episode();
    act(episode, 0, 3);
    EXPECT_TRUE(obeys(client::ControlMode::Off, 1));
    act(episode, 3, 5);
    EXPECT_TRUE(obeys(client::ControlMode::Follow, 2));
    act(episode, 5, 7);
    episode.end(Rows{7, 0});
    EXPECT_TRUE(agent.flush());
    return server->segments();
}

TEST(Fallback, ItsDecisionsAreRecordedAsSuchIfTheLearnerAcceptsThem) {
    const auto server = std::make_shared<FakeServer>();
    server->accepts_fallback = true;
    const auto segments = recorded_around_an_order(server);
    ASSERT_EQ(segments.size(), 3U);
    EXPECT_EQ(segments[0].ending(), v1::ENDING_CONTINUES);
    EXPECT_EQ(segments[1].decided_by(), v1::DECIDED_BY_FALLBACK);
    EXPECT_EQ(column<std::uint8_t>(segments[1], 1), (std::vector<std::uint8_t>{2, 2}));
    EXPECT_EQ(column<float>(segments[1], 0), (Rows{3, 0, 4, 0, 5, 0}));
    EXPECT_EQ(column<float>(segments[1], 2), (Rows{3, 4}));
    EXPECT_EQ(column<float>(segments[1], 3), (Rows{0, 0})) << "a fallback has no log-probabilities";
    EXPECT_EQ(segments[2].ending(), v1::ENDING_TERMINATED);
}

TEST(Fallback, ItsDecisionsAreLeftOutIfTheLearnerHasNoUseForThem) {
    const auto segments = recorded_around_an_order(std::make_shared<FakeServer>());
    ASSERT_EQ(segments.size(), 2U);
    EXPECT_EQ(segments[0].ending(), v1::ENDING_TRUNCATED);
    EXPECT_EQ(segments[0].steps(), 3U);
    EXPECT_EQ(segments[1].start(), 5U);
    EXPECT_EQ(segments[1].decided_by(), v1::DECIDED_BY_UNSPECIFIED) << "bytes as before the field existed";
}

TEST(Fallback, ItSeesTheMask) {
    const auto server = std::make_shared<FakeServer>();
    const auto last_allowed = [](const Observation&, ArrayView mask) {
        return mask.given() ? static_cast<int>(mask.size()) - 1 : 0;
    };
    Agent agent = connect_to(server, quick_settings(), last_allowed);
    server->order(client::ControlMode::Off, 1);
    ASSERT_TRUE(eventually([&] { return agent.health().control_sequence == 1U; }));
    Episode episode = agent.episode();
    EXPECT_EQ(episode.act(Rows{1, 0}, std::array<bool, 3>{false, false, true}).choice(), 2);
    EXPECT_EQ(episode.act(Rows{1, 0}).choice(), 0);
}

TEST(Fallback, WithoutOneAnOrderToStopIsAProblemThatSaysWhatToDo) {
    const auto server = std::make_shared<FakeServer>();
    Agent agent = connect_to(server);
    Episode episode = agent.episode();
    server->order(client::ControlMode::Off, 1);
    ASSERT_TRUE(eventually([&] { return agent.health().off == "control"; }));
    const Action action = episode.act(Rows{0, 0});
    EXPECT_EQ(action.problem(), Problem::PolicyOff);
    EXPECT_NE(action.message().find("an operator ordered it off"), std::string::npos);
}

TEST(Fallback, OneThatFailsIsAClearProblem) {
    const std::vector<std::pair<Fallback, std::string>> cases{
        {[](const Observation&) -> FallbackAction { throw std::runtime_error("no idea"); },
         "threw an exception: no idea"},
        {[](const Observation&) -> FallbackAction { throw 1; }, "not a std::exception"},
        {[](const Observation&) { return 3; }, "a whole number from 0 to 2"},
        {[](const Observation&) {
             return std::vector<std::int64_t>{1, 2};
         },
         "expected 1 choice and 0 numbers"},
        {[](const Observation&) { return Rows{1.5F}; }, "expected 1 choice and 0 numbers"},
    };
    for (const auto& [fallback, problem] : cases) {
        Agent agent = connect_to(std::make_shared<FakeServer>(), quick_settings(), fallback);
        const Action action = agent.episode().act(Rows{NAN, 0});
        EXPECT_EQ(action.problem(), Problem::FallbackFailed);
        EXPECT_NE(action.message().find(problem), std::string::npos) << action.message();
    }
}

TEST(Fallback, BeforeTheFirstPolicyItIsCheckedAgainstTheSettings) {
    const auto server = std::make_shared<FakeServer>();
    server->set_down(true);
    ClientSettings settings = quick_settings();
    settings.timeout = 0.01;
    settings.action = DiscreteAction{3, 0};
    Agent agent = connect_to(server, settings, [](const Observation& observation) {
        return static_cast<std::int64_t>(observation[0].array.size());
    });
    Episode episode = agent.episode();
    EXPECT_EQ(episode.act(Rows{0, 0}).choice(), 2);
    EXPECT_EQ(episode.act(Rows{0, 0, 0}).problem(), Problem::FallbackFailed);
}

const auto structure = std::make_shared<const ActionStructure>(
    std::vector<std::pair<std::string, ActionSpec>>{{"rate", BoxAction{{0}, {1}}}, {"server", DiscreteAction{4, 1}}});

struct AdapterCase {
    ActionAdapter adapter;
    FallbackAction good;
    ActionValues row;
    std::vector<FallbackAction> bad;
};

std::vector<AdapterCase> adapter_cases() {
    using Choices = std::vector<std::int64_t>;
    return {
        {ActionAdapter(DiscreteAction{3, 5}), 6, {{1}, {}}, {4, 8, Choices{6, 6}, Rows{6}}},
        {ActionAdapter(MultiDiscreteAction{{2, 3}}), Choices{1, 2}, {{1, 2}, {}}, {Choices{2, 0}, Choices{0, -1}, 0}},
        {ActionAdapter(BoxAction{{-1}, {2}}), Rows{1.5F}, {{}, {1.5F}}, {Rows{2.5F}, Rows{NAN}, Rows{1, 1}, 1}},
        {ActionAdapter(MixedAction{{3}, {0}, {1}}),
         {Choices{2}, Rows{0.5F}},
         {{}, {2, 0.5F}},
         {{Choices{3}, Rows{0.5F}}, {Choices{1}, Rows{2}}, 1}},
        {ActionAdapter(structure->spec(), structure),
         {{"server", 2}, {"rate", Rows{0.5F}}},
         {{}, {1, 0.5F}},
         {{{"server", 2}}, {{"server", 0}, {"rate", Rows{0.5F}}}, {{"server", 2}, {"speed", Rows{0.5F}}}, 3}},
    };
}

TEST(Fallback, AnActionIsCheckedAgainstTheActionSpace) {
    for (const AdapterCase& one : adapter_cases()) {
        ActionValues action;
        EXPECT_EQ(one.adapter.read(one.good, action), "");
        const ActionValues row = one.adapter.row(action);
        EXPECT_EQ(row.choices, one.row.choices);
        EXPECT_EQ(row.numbers, one.row.numbers);
        Decision decision;
        decision.choices = row.choices.data();
        decision.numbers = row.numbers.data();
        EXPECT_TRUE(one.adapter.agree(decision, action));
        for (const FallbackAction& bad : one.bad) {
            EXPECT_NE(one.adapter.read(bad, action), "");
        }
    }
}

}  // namespace
}  // namespace rl4sys::testing
