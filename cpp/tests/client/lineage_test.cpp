// A client never goes back: neither to a lower version of its lineage, nor to another history.
#include <gtest/gtest.h>

#include <fstream>

#include "client/fake_server.hpp"
#include "client/policy_cache.hpp"
#include "records/temporary.hpp"

namespace rl4sys::testing::lineage {
namespace {

const std::vector<float> seen{1.0F, 2.0F};

std::shared_ptr<FakeServer> server_at(std::uint64_t version, const std::string& lineage) {
    const auto server = std::make_shared<FakeServer>();
    server->lineage = lineage;
    server->set_version(version, 0.5F);
    return server;
}

void record_one(Agent& agent) {
    Episode episode = agent.episode();
    ASSERT_TRUE(episode.act(seen));
    episode.end(seen);
}

TEST(Lineage, ALowerVersionOfTheSameLineageIsRefusedUntilTheServerHasCaughtUp) {
    const auto server = server_at(741, "a");
    Agent agent = connect_to(server);
    EXPECT_EQ(agent.health().version, 741U);
    EXPECT_EQ(agent.health().lineage, "a");
    server->set_down(true);
    server->forget_sessions();
    server->set_version(1, 0.1F);
    server->set_down(false);
    ASSERT_TRUE(server->wait_for_joins(2));
    EXPECT_EQ(server->last_join.lineage, "a");
    EXPECT_EQ(server->last_join.have, 741U);
    for (std::uint64_t version = 2; version < 12; ++version) {
        server->set_version(version, 0.2F);
    }
    record_one(agent);
    ASSERT_TRUE(agent.flush());
    EXPECT_EQ(agent.health().version, 741U);
    EXPECT_EQ(server->segments()[0].policy_version(), 741U);
    server->set_version(742, 0.3F);
    EXPECT_TRUE(eventually([&] { return agent.health().version == 742U; }));
}

TEST(Lineage, AnotherLineageIsNotFollowedAndNothingIsRecordedUntilAnOperatorDecides) {
    const auto server = server_at(9, "a");
    Agent agent = connect_to(server);
    server->set_down(true);
    server->forget_sessions();
    server->lineage = "b";
    server->schema_hash = std::string(32, 't');
    server->set_version(0, 0.1F);
    server->set_down(false);
    ASSERT_TRUE(server->wait_for_joins(2));
    ASSERT_TRUE(eventually([&] { return agent.health().lineage_problem.find("lineage b") != std::string::npos; }));
    server->publish(0.2F);
    record_one(agent);
    EXPECT_EQ(agent.health().version, 9U);
    EXPECT_EQ(agent.health().lineage, "a");
    EXPECT_TRUE(server->segments().empty());
    server->replaced_lineages = {"a"};
    server->forget_sessions();
    ASSERT_TRUE(eventually([&] { return agent.health().lineage == "b"; }));
    EXPECT_EQ(agent.health().version, 1U);
    record_one(agent);
    ASSERT_TRUE(agent.flush());
    EXPECT_EQ(server->segments().size(), 1U);
}

TEST(Lineage, VersionsOfServersThatKnowNoLineagesAreFollowedInAnyOrder) {
    const auto server = server_at(9, "");
    const Agent agent = connect_to(server);
    server->set_down(true);
    server->forget_sessions();
    server->set_version(3, 0.1F);
    server->set_down(false);
    EXPECT_TRUE(eventually([&] { return agent.health().version == 3U; }));
}

TEST(Lineage, ARestartedClientTellsWhatItsCacheHasAndDoesNotGoBack) {
    const TemporaryDirectory directory;
    ClientSettings settings = quick_settings();
    settings.cache = directory.path();
    { const Agent agent = connect_to(server_at(46, "a"), settings); }
    const auto behind = server_at(0, "a");
    {
        const Agent agent = connect_to(behind, settings);
        EXPECT_EQ(behind->last_join.lineage, "a");
        EXPECT_EQ(behind->last_join.have, 46U);
        EXPECT_NE(behind->last_join.epoch, 0U);
        EXPECT_EQ(agent.health().version, 46U);
    }
    const Agent agent = connect_to(server_at(50, "a"), settings);
    EXPECT_EQ(agent.health().version, 50U);
}

TEST(Lineage, ACacheFileOfAnEarlierVersionIsRead) {
    const TemporaryDirectory directory;
    client::PolicyCache cache(directory.path(), "p", client::steady_seconds);
    auto snapshot = std::make_shared<client::Snapshot>();
    snapshot->interface =
        std::make_shared<const client::PolicyInterface>(small_policy(), std::nullopt, ActingMode::Explore);
    snapshot->schema_hash = std::string(32, '\x9f');
    snapshot->lineage = "a";
    snapshot->version = 4;
    snapshot->max_steps = 10;
    snapshot->weights = std::make_shared<const Weights>(9, 0.5F);
    cache.keep(snapshot);
    EXPECT_EQ(cache.load()->lineage, "a");
    const auto file = directory.path() / "p.policy";
    std::ostringstream contents;
    contents << std::ifstream(file, std::ios::binary).rdbuf();
    std::string text = contents.str();
    const std::string line = "\"lineage\":\"a\",";
    ASSERT_NE(text.find(line), std::string::npos);
    std::ofstream(file, std::ios::binary) << text.erase(text.find(line), line.size());
    ASSERT_NE(cache.load(), nullptr);
    EXPECT_EQ(cache.load()->lineage, "");
    EXPECT_EQ(cache.load()->version, 4U);
}

}  // namespace
}  // namespace rl4sys::testing::lineage
