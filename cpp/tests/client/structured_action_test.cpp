#include <gtest/gtest.h>

#include <cmath>

#include "client/fake_server.hpp"

namespace rl4sys::testing {
namespace {

using Rows = std::vector<float>;

ClientSettings structured_settings() {
    ClientSettings settings = quick_settings();
    const ClientSettings parsed = parse_settings(
        R"({"client_id": "test", "action": {"rate": {"low": [0], "high": [1]}, "route": {"server": {"n": 3, "start": 1}}}})");
    settings.action = parsed.action;
    settings.action_structure = parsed.action_structure;
    return settings;
}

/// Scores three choices and one number.
PolicySpec mixed_policy() {
    PolicySpec spec = small_policy();
    spec.action = *structured_settings().action;
    spec.program.tensors = {{"w", {2, 4}}, {"b", {4}}, {"s", {1}}};
    spec.head.kind = HeadKind::Mixed;
    spec.head.tensors = {"s"};
    return spec;
}

TEST(StructuredAction, PartsHaveTheirNamesAndTheRecordHasTheFlatAction) {
    const auto server = std::make_shared<FakeServer>(mixed_policy());
    Agent agent = connect_to(server, structured_settings());
    Episode episode = agent.episode();
    const Action action = episode.act(Rows{1, 2});
    ASSERT_TRUE(action) << action.message();
    const ActionValue chosen = action.part("route.server");
    EXPECT_GE(chosen.choice(), 1);
    EXPECT_LE(chosen.choice(), 3);
    EXPECT_EQ(chosen.choice(), action.choice());
    const float rate = action.part("rate").number();
    EXPECT_EQ(rate, action.numbers()[0]);
    EXPECT_THROW(action.part("server"), std::invalid_argument);
    const auto recorded_choice = static_cast<float>(chosen.choice() - 1);
    episode.end();
    ASSERT_TRUE(agent.flush());
    const Rows recorded = column<float>(server->segments()[0], 1);
    ASSERT_EQ(recorded.size(), 2U);
    EXPECT_EQ(recorded[0], recorded_choice);
    EXPECT_EQ(std::min(std::max(recorded[1], 0.0F), 1.0F), rate);
}

TEST(StructuredAction, AFallbackMayNameItsParts) {
    const auto server = std::make_shared<FakeServer>(mixed_policy());
    Agent agent = connect_to(server, structured_settings(), [](const Observation&) {
        return FallbackAction{{"route.server", 3}, {"rate", Rows{0.25F}}};
    });
    Episode episode = agent.episode();
    const Action action = episode.act(Rows{NAN, 2});
    ASSERT_TRUE(action) << action.message();
    EXPECT_EQ(action.part("route.server").choice(), 3);
    EXPECT_EQ(action.part("rate").number(), 0.25F);
}

TEST(StructuredAction, PartsOfOneKindMakeOneAction) {
    const auto several = parse_settings(R"({"client_id": "a", "action": [4, {"sizes": [3, 2]}]})");
    EXPECT_EQ(std::get<MultiDiscreteAction>(*several.action).sizes, (std::vector<std::int64_t>{4, 3, 2}));
    EXPECT_EQ(several.action_structure->find("1")->at, 1U);
    EXPECT_EQ(several.action_structure->find("1")->size, 2U);
    EXPECT_EQ(parse_settings(R"({"client_id": "a", "action": 4})").action_structure, nullptr);
    EXPECT_THROW(parse_settings(R"({"client_id": "a", "action": {"a.b": 2, "a": {"b": 3}}})"), SettingsError);
}

}  // namespace
}  // namespace rl4sys::testing
