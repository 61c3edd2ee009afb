#include <gtest/gtest.h>

#include <fstream>

#include "records/temporary.hpp"
#include "rl4sys/rl4sys_agent.hpp"

namespace rl4sys {
namespace {

using testing::TemporaryDirectory;

TEST(OriginalAgent, AConfigWithoutActionsIsRefused) {
    const TemporaryDirectory directory;
    const auto file = directory.path() / "conf.json";
    std::ofstream(file) << R"({"algorithm_name": "PPO", "train_server_address": "127.0.0.1:1"})";
    EXPECT_THROW(RL4SysAgent(file.string()), SettingsError);
}

TEST(OriginalAgent, WithoutAServerTheErrorNamesTheAddress) {
    const TemporaryDirectory directory;
    const auto file = directory.path() / "conf.json";
    std::ofstream(file) << R"({"client_id": "a", "algorithm_name": "PPO", "timeout": 0.2,
        "algorithm_parameters": {"input_size": 8, "act_dim": 4}, "train_server_address": "127.0.0.1:1"})";
    try {
        RL4SysAgent agent(file.string());
        FAIL() << "there is no server";
    } catch (const ConnectError& error) {
        EXPECT_NE(std::string(error.what()).find("127.0.0.1:1"), std::string::npos);
    }
}

TEST(OriginalAgent, AConfigWithoutInputSizeConnectsAtTheFirstRequest) {
    const TemporaryDirectory directory;
    const auto file = directory.path() / "conf.json";
    std::ofstream(file) << R"({"client_id": "a", "algorithm_name": "PPO", "timeout": 0.2,
        "algorithm_parameters": {"act_dim": 4}, "train_server_address": "127.0.0.1:1"})";
    RL4SysAgent agent(file.string());
    EXPECT_EQ(agent.agent(), nullptr);
    EXPECT_EQ(agent.getCurrentModelVersion(), -1);
    EXPECT_TRUE(agent.flushTrajectories());
    EXPECT_THROW(agent.requestForAction(nullptr, {1, 2}), ConnectError);
    agent.close();
}

}  // namespace
}  // namespace rl4sys
