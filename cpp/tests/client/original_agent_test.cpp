#include <gtest/gtest.h>

#include <fstream>

#include "client/fake_server.hpp"
#include "records/temporary.hpp"
#include "rl4sys/log.hpp"
#include "rl4sys/rl4sys_agent.hpp"

namespace rl4sys {
namespace {

using testing::column;
using testing::connect_to;
using testing::FakeServer;
using testing::TemporaryDirectory;
using Trajectory = RL4SysAgent::Trajectory;
using Rows = std::vector<float>;

/// What step `number` of a trajectory observes.
Rows seen(int number) {
    return {static_cast<float>(number), 0.0F};
}

/// Request the next action of a trajectory, which becomes the one that the answer has.
RL4SysAction request(RL4SysAgent& agent, Trajectory& trajectory, int number) {
    auto answer = agent.requestForAction(trajectory, seen(number));
    trajectory = answer->first;
    return answer->second;
}

/// The observations of each stored segment.
std::vector<Rows> observed(FakeServer& server) {
    std::vector<Rows> found;
    for (const v1::Segment& segment : server.segments()) {
        found.push_back(column<float>(segment, 0));
    }
    return found;
}

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

TEST(OriginalAgent, TheOriginalLoopDeliversEveryStep) {
    const auto server = std::make_shared<FakeServer>();
    RL4SysAgent agent(connect_to(server));
    Trajectory trajectory;
    for (int step = 0; step < 3; ++step) {
        RL4SysAction action = request(agent, trajectory, step);
        agent.addToTrajectory(trajectory, action);
        agent.updateActionReward(action, 5.0);
        agent.update_action_reward(action, step);
        if (step == 2) {
            EXPECT_TRUE(agent.markEndOfTrajectory(trajectory, action));
        }
    }
    EXPECT_TRUE(trajectory->is_completed());
    EXPECT_EQ(trajectory->actions().size(), 3U);
    ASSERT_TRUE(agent.flushTrajectories());
    ASSERT_EQ(server->segments().size(), 1U);
    EXPECT_EQ(column<float>(server->segments()[0], 2), (Rows{0, 1, 2}));
    EXPECT_EQ(server->segments()[0].ending(), v1::ENDING_TERMINATED);
}

TEST(OriginalAgent, DecisionsThatAreNeverAddedAreNotRecorded) {
    const auto server = std::make_shared<FakeServer>();
    RL4SysAgent agent(connect_to(server));
    Trajectory trajectory;
    for (int step = 0; step < 300; ++step) {
        request(agent, trajectory, step);
        EXPECT_TRUE(agent.requestForAction(nullptr, seen(step)));
    }
    trajectory.reset();
    ASSERT_TRUE(agent.flush());
    EXPECT_TRUE(server->segments().empty());
    EXPECT_EQ(agent.agent()->health().unrecorded_decisions, 600U);
    EXPECT_TRUE(agent.agent()->health().drops.empty());
}

TEST(OriginalAgent, AnOmittedDecisionCutsTheRecord) {
    const auto server = std::make_shared<FakeServer>();
    RL4SysAgent agent(connect_to(server));
    Trajectory trajectory;
    for (int step = 0; step < 5; ++step) {
        RL4SysAction action = request(agent, trajectory, step);
        action.updateReward(step);
        if (step != 2) {
            agent.addToTrajectory(trajectory, action);
        }
        if (step == 4) {
            agent.markEndOfTrajectory(trajectory, action);
        }
    }
    ASSERT_TRUE(agent.flush());
    EXPECT_EQ(observed(*server), (std::vector<Rows>{{0, 0, 1, 0, 2, 0}, {3, 0, 4, 0, 4, 0}}));
    EXPECT_EQ(server->segments()[0].ending(), v1::ENDING_TRUNCATED);
    EXPECT_EQ(column<float>(server->segments()[1], 2), (Rows{3, 4}));
}

TEST(OriginalAgent, TheLastActionAndItsRewardMayComeAfterTheEnd) {
    const auto server = std::make_shared<FakeServer>();
    RL4SysAgent agent(connect_to(server));
    Trajectory trajectory;
    RL4SysAction action = request(agent, trajectory, 0);
    agent.markEndOfTrajectory(trajectory, action);
    EXPECT_TRUE(trajectory->isCompleted());
    agent.addToTrajectory(trajectory, action);
    action.updateReward(7.0);
    ASSERT_TRUE(agent.flush());
    ASSERT_EQ(server->segments().size(), 1U);
    EXPECT_EQ(column<float>(server->segments()[0], 2), Rows{7});
    EXPECT_EQ(agent.agent()->health().late_rewards, 0U);
}

TEST(OriginalAgent, AnEndWithAnActionThatIsNeverAddedTruncatesBeforeIt) {
    const auto server = std::make_shared<FakeServer>();
    RL4SysAgent agent(connect_to(server));
    Trajectory trajectory;
    RL4SysAction first = request(agent, trajectory, 0);
    agent.addToTrajectory(trajectory, first);
    first.updateReward(1.0);
    const RL4SysAction second = request(agent, trajectory, 1);
    agent.markEndOfTrajectory(trajectory, second);
    ASSERT_TRUE(agent.flush());
    EXPECT_EQ(observed(*server), (std::vector<Rows>{{0, 0, 1, 0}}));
    EXPECT_EQ(server->segments()[0].ending(), v1::ENDING_TRUNCATED);
}

TEST(OriginalAgent, AnActionOfAnotherTrajectoryIsRefused) {
    RL4SysAgent agent(connect_to(std::make_shared<FakeServer>()));
    Trajectory one;
    Trajectory other;
    const RL4SysAction action = request(agent, one, 0);
    request(agent, other, 0);
    EXPECT_THROW(agent.addToTrajectory(other, action), std::invalid_argument);
}

TEST(OriginalAgent, AForgottenTrajectoryIsTruncated) {
    const auto server = std::make_shared<FakeServer>();
    RL4SysAgent agent(connect_to(server));
    Trajectory trajectory;
    agent.addToTrajectory(trajectory, request(agent, trajectory, 0));
    request(agent, trajectory, 1);
    trajectory.reset();
    ASSERT_TRUE(agent.flush());
    EXPECT_EQ(observed(*server), (std::vector<Rows>{{0, 0, 1, 0}}));
    EXPECT_EQ(agent.agent()->health().open_episodes, 0U);
}

TEST(OriginalAgent, ActionsAndTrajectoriesHaveTheirOriginalAttributes) {
    RL4SysAgent agent(connect_to(std::make_shared<FakeServer>(testing::small_policy(true))));
    auto answer = agent.request_for_action(nullptr, seen(3), {1, 0, 1});
    auto& [trajectory, action] = *answer;
    EXPECT_EQ(action.obs(), seen(3));
    EXPECT_EQ(action.mask(), (std::vector<std::uint8_t>{1, 0, 1}));
    EXPECT_LT(action.data().at("log_prob"), 0.0);
    EXPECT_EQ(action.data().at("logp_a"), action.data().at("log_prob"));
    EXPECT_EQ(action.version(), 0);
    EXPECT_FALSE(action.is_reward_set());
    action.update_reward(2.0);
    EXPECT_EQ(action.rew(), 2.0);
    agent.add_to_trajectory(trajectory, action);
    agent.mark_end_of_trajectory(trajectory, action);
    EXPECT_TRUE(action.is_done());
    EXPECT_EQ(trajectory->get_actions()[0].rew(), 2.0);
    EXPECT_TRUE(trajectory->is_valid());
    EXPECT_EQ(trajectory->version(), 0);
    EXPECT_EQ(agent.client_id(), "tester");
    EXPECT_EQ(agent.server_address(), "127.0.0.1:50051");
    EXPECT_EQ(agent.local_version(), 0);
}

TEST(OriginalAgent, AMaskMayConsistOfNumbers) {
    const auto server = std::make_shared<FakeServer>(testing::small_policy(true));
    RL4SysAgent agent(connect_to(server));
    const std::vector<float> allowed{0.0F, 0.5F, 0.0F};
    Trajectory trajectory;
    for (int step = 0; step < 20; ++step) {
        const auto answer = agent.requestForAction(trajectory, seen(step), allowed);
        ASSERT_TRUE(answer) << agent.lastError();
        trajectory = answer->first;
        EXPECT_EQ(answer->second.getChoice(), 1);
        agent.addToTrajectory(trajectory, answer->second);
    }
    EXPECT_EQ(trajectory->size(), 20U);
}

TEST(OriginalAgent, ItsAlgorithmIsNamedAsInTheConfig) {
    const TemporaryDirectory directory;
    const auto file = directory.path() / "conf.json";
    std::ofstream(file) << R"({"client_id": "a", "algorithm_name": "PPO", "enable_compression": true,
        "connection_timeout_seconds": 0.2, "log_level": "ERROR", "debug": false,
        "algorithm_parameters": {"act_dim": 4, "ent_coef": 0.01}, "train_server_address": "127.0.0.1:1"})";
    const RL4SysAgent agent(file.string());
    EXPECT_EQ(agent.algorithm_name(), "PPO");
    EXPECT_EQ(agent.algorithm_parameters(), R"({"act_dim":4,"ent_coef":0.01})");
    EXPECT_EQ(agent.algorithm_type(), "onpolicy");
    EXPECT_EQ(agent.server_address(), "127.0.0.1:1");
    EXPECT_EQ(agent.local_version(), 0);
    log_to(nullptr);
}

}  // namespace
}  // namespace rl4sys
