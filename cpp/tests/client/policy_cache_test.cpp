#include "client/policy_cache.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "client/fake_server.hpp"
#include "records/temporary.hpp"

namespace rl4sys::testing {
namespace {

TEST(PolicyCache, AClientStartsFromItWhileTheServerIsUnreachable) {
    const TemporaryDirectory directory;
    ClientSettings settings = quick_settings();
    settings.cache = directory.path() / "cache";
    {
        const auto server = std::make_shared<FakeServer>();
        server->publish(0.75F);
        const Agent agent = connect_to(server, settings);
        EXPECT_EQ(agent.health().version, 1U);
    }
    ASSERT_TRUE(std::filesystem::exists(*settings.cache / "tester.policy"));
    const auto server = std::make_shared<FakeServer>();
    server->set_down(true);
    settings.timeout = 0.1;
    Agent agent = connect_to(server, settings);
    EXPECT_EQ(agent.health().version, 1U);
    Episode episode = agent.episode();
    EXPECT_TRUE(episode.act(std::vector<float>{1, 2}));
}

TEST(PolicyCache, ADamagedFileIsNotUsed) {
    const TemporaryDirectory directory;
    client::PolicyCache cache(directory.path(), "p", client::steady_seconds);
    EXPECT_EQ(cache.load(), nullptr);
    auto snapshot = std::make_shared<client::Snapshot>();
    snapshot->interface =
        std::make_shared<const client::PolicyInterface>(small_policy(), std::nullopt, ActingMode::Explore);
    snapshot->schema_hash = std::string(32, '\x9f');
    snapshot->version = 4;
    snapshot->max_steps = 10;
    snapshot->weights = std::make_shared<const Weights>(9, 0.5F);
    cache.keep(snapshot);
    const client::SharedSnapshot read = cache.load();
    ASSERT_NE(read, nullptr);
    EXPECT_EQ(read->version, 4U);
    EXPECT_EQ(read->schema_hash, snapshot->schema_hash);
    EXPECT_EQ(*read->weights, *snapshot->weights);
    const auto file = directory.path() / "p.policy";
    std::filesystem::resize_file(file, std::filesystem::file_size(file) - 1);
    EXPECT_EQ(cache.load(), nullptr);
}

}  // namespace
}  // namespace rl4sys::testing
