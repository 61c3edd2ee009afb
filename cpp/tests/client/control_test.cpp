// The kill switch: orders of operators, the kill file and the lease.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "client/fake_server.hpp"
#include "client/guard.hpp"
#include "records/temporary.hpp"

namespace rl4sys::testing::control {
namespace {

using client::AgentStatus;
using client::ControlFile;
using client::ControlMode;
using client::ControlOrder;
using client::Governor;
using client::Guard;

const std::vector<float> seen{1.0F, 2.0F};

FallbackAction always_two(const Observation& /*observation*/) {
    return 2;
}

ClientSettings cached_in(const TemporaryDirectory& directory, double timeout = 10.0) {
    ClientSettings settings = quick_settings();
    settings.cache = directory.path();
    settings.timeout = timeout;
    return settings;
}

bool becomes(const Agent& agent, const std::string& off) {
    return eventually([&] { return agent.health().off == off; });
}

bool obeys(const Agent& agent, std::uint64_t sequence) {
    return eventually([&] { return agent.health().control_sequence == sequence; });
}

TEST(Control, OffLetsTheFallbackDecideUntilTheOperatorLetsClientsFollow) {
    const auto server = std::make_shared<FakeServer>();
    Agent agent = connect_to(server, quick_settings(), always_two);
    Episode episode = agent.episode();
    server->order(ControlMode::Off, 10, "it oscillates");
    ASSERT_TRUE(becomes(agent, "control"));
    for (int step = 0; step < 20; ++step) {
        const Action action = episode.act(seen);
        EXPECT_TRUE(action.is_fallback());
        EXPECT_EQ(action.choice(), 2);
    }
    EXPECT_EQ(agent.health().control, "off by operator: it oscillates");
    server->order(ControlMode::Follow, 11);
    ASSERT_TRUE(becomes(agent, ""));
    EXPECT_FALSE(episode.act(seen).is_fallback());
    EXPECT_EQ(agent.health().decisions, 1U);
    EXPECT_EQ(agent.health().fallback_decisions, 20U);
}

TEST(Control, OffWithoutAFallbackIsOneClearProblem) {
    const auto server = std::make_shared<FakeServer>();
    Agent agent = connect_to(server);
    Episode episode = agent.episode();
    EXPECT_TRUE(episode.act(seen));
    server->order(ControlMode::Off, 10);
    ASSERT_TRUE(becomes(agent, "control"));
    const Action none = episode.act(seen);
    EXPECT_EQ(none.problem(), Problem::PolicyOff);
    EXPECT_NE(none.message().find("an operator ordered it off"), std::string::npos);
    server->order(ControlMode::Follow, 11);
    ASSERT_TRUE(becomes(agent, ""));
    EXPECT_TRUE(episode.act(seen));
    episode.end(seen);
    ASSERT_TRUE(agent.flush());
    ASSERT_EQ(server->segments().size(), 1U);
    EXPECT_EQ(column<float>(server->segments()[0], 2).size(), 2U);
}

TEST(Control, FrozenKeepsTheVersionAndFollowTakesTheNewest) {
    const auto server = std::make_shared<FakeServer>();
    const Agent agent = connect_to(server);
    server->order(ControlMode::Frozen, 10);
    ASSERT_TRUE(obeys(agent, 10));
    for (int version = 1; version < 4; ++version) {
        server->publish(0.5F);
    }
    server->order(ControlMode::Frozen, 11);
    ASSERT_TRUE(obeys(agent, 11));
    EXPECT_EQ(agent.health().version, 0U);
    server->order(ControlMode::Follow, 12);
    EXPECT_TRUE(eventually([&] { return agent.health().version == 3U; }));
    server->publish(0.6F);
    EXPECT_TRUE(eventually([&] { return agent.health().version == 4U; }));
    EXPECT_EQ(agent.health().damaged_patches, 0U);
}

TEST(Control, AnEarlierOrderThatComesLateIsIgnored) {
    Governor governor;
    EXPECT_TRUE(governor.obey({ControlMode::Off, 20, "", ""}));
    EXPECT_FALSE(governor.obey({ControlMode::Follow, 20, "", ""}));
    EXPECT_FALSE(governor.obey({ControlMode::Follow, 19, "", ""}));
    EXPECT_EQ(governor.plan()->off, "control");
    EXPECT_TRUE(governor.obey({ControlMode::Follow, 21, "", ""}));
    EXPECT_EQ(governor.plan()->off, "no_policy");
}

TEST(Control, AnOrderIsRememberedWhileTheServerIsAway) {
    const TemporaryDirectory directory;
    const auto server = std::make_shared<FakeServer>();
    {
        const Agent agent = connect_to(server, cached_in(directory), always_two);
        server->order(ControlMode::Off, 10);
        ASSERT_TRUE(eventually([&] { return std::filesystem::exists(directory.path() / "tester.control"); }));
    }
    const auto away = std::make_shared<FakeServer>();
    away->set_down(true);
    Agent agent = connect_to(away, cached_in(directory, 0.05), always_two);
    EXPECT_EQ(agent.health().off, "control");
    EXPECT_EQ(agent.health().version, 0U);
    EXPECT_TRUE(agent.episode().act(seen).is_fallback());
}

TEST(Control, AnOrderSurvivesAServerThatLostIt) {
    const TemporaryDirectory directory;
    ControlFile(directory.path(), "tester").save({ControlMode::Off, 10, "", ""});
    const auto server = std::make_shared<FakeServer>();
    const Agent agent = connect_to(server, cached_in(directory), always_two);
    EXPECT_EQ(agent.health().off, "control");
    server->order(ControlMode::Follow, 9);
    server->order(ControlMode::Follow, 11);
    EXPECT_TRUE(becomes(agent, ""));
}

TEST(Control, AnOrderSurvivesAKilledClient) {
    const TemporaryDirectory directory;
    const pid_t child = ::fork();
    if (child == 0) {
        ControlFile(directory.path(), "a").save({ControlMode::Off, 7, "why", "me"});
        ::kill(::getpid(), SIGKILL);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));
    const ControlOrder order = ControlFile(directory.path(), "a").load();
    EXPECT_EQ(order.text(), "off by me: why");
    EXPECT_EQ(order.sequence, 7U);
}

TEST(Control, AnEarlierOrderThatIsWrittenLateDoesNotReplaceALaterOne) {
    const TemporaryDirectory directory;
    ControlFile file(directory.path(), "a");
    file.save({ControlMode::Off, 8, "", ""});
    file.save({ControlMode::Follow, 7, "", ""});
    EXPECT_EQ(file.load().sequence, 8U);
}

TEST(Control, AnOrderThatCannotBeReadCountsAsOff) {
    const TemporaryDirectory directory;
    std::ofstream(directory.path() / "a.control") << "{";
    const ControlOrder order = ControlFile(directory.path(), "a").load();
    EXPECT_EQ(order.mode, ControlMode::Off);
    EXPECT_EQ(order.sequence, 0U);
}

TEST(Control, AnOrderOfALaterProtocolIsObeyedAsOff) {
    EXPECT_EQ(ControlOrder::from_message({17, 1, "", ""}).mode, ControlMode::Off);
    EXPECT_EQ(ControlOrder::from_message({0, 1, "", ""}).mode, ControlMode::Follow);
}

TEST(Control, TheOrderInTheReplyToJoinIsObeyedBeforeTheFirstDecision) {
    const auto server = std::make_shared<FakeServer>();
    server->order(ControlMode::Off, 1);
    Agent agent = connect_to(server, quick_settings(), always_two);
    EXPECT_TRUE(agent.episode().act(seen).is_fallback());
}

TEST(Control, AKillFileTurnsThePolicyOffAndOnAgain) {
    const TemporaryDirectory directory;
    ClientSettings settings = quick_settings();
    settings.kill_file = directory.path() / "kill";
    std::ofstream(*settings.kill_file) << "";
    Agent agent = connect_to(std::make_shared<FakeServer>(), settings, always_two);
    EXPECT_EQ(agent.health().off, "kill_file");
    EXPECT_TRUE(agent.episode().act(seen).is_fallback());
    std::filesystem::remove(*settings.kill_file);
    EXPECT_TRUE(becomes(agent, ""));
}

TEST(Control, AKillFileThatCannotBeLookedAtCounts) {
    const TemporaryDirectory directory;
    std::filesystem::create_symlink("loop", directory.path() / "loop");
    Governor governor;
    AgentStatus status;
    const Guard guard(
        governor, status, [] { return 0.0; }, directory.path() / "loop", std::nullopt);
    EXPECT_EQ(governor.plan()->off, "kill_file");
}

TEST(Control, ASilentServerEndsTheLeaseUntilItIsHeardAgain) {
    Governor governor;
    AgentStatus status;
    double now = 0.0;
    Guard guard(
        governor, status, [&] { return now; }, std::nullopt, 2.0);
    std::vector<std::string> offs;
    for (const auto& [time, heard] : {std::pair(1.0, false), {2.5, false}, {3.0, true}, {4.0, false}, {5.5, false}}) {
        now = time;
        if (heard) {
            status.succeeded(client::Caller::Watcher);
        }
        guard.look();
        offs.emplace_back(governor.plan()->off);
    }
    EXPECT_EQ(offs, (std::vector<std::string>{"no_policy", "lease", "no_policy", "no_policy", "lease"}));
}

TEST(Control, ALeaseIsKeptByAServerThatTakesNoReports) {
    const auto server = std::make_shared<FakeServer>();
    ClientSettings settings = quick_settings();
    settings.lease = 0.3;
    Agent agent = connect_to(server, settings, always_two);
    ASSERT_TRUE(eventually([&] {
        int pulls = 0;
        server->change([&] { pulls = server->pulls; });
        return pulls >= 5;
    }));
    EXPECT_EQ(agent.health().off, "");
    server->set_down(true);
    ASSERT_TRUE(becomes(agent, "lease"));
    EXPECT_TRUE(agent.episode().act(seen).is_fallback());
    server->set_down(false);
    EXPECT_TRUE(becomes(agent, ""));
}

TEST(Control, ActingDoesNotWaitWhileOrdersArrive) {
    const auto server = std::make_shared<FakeServer>();
    Agent agent = connect_to(server, quick_settings(), always_two);
    Episode episode = agent.episode();
    for (std::uint64_t sequence = 1; sequence < 40; ++sequence) {
        server->order(sequence % 2 == 1 ? ControlMode::Off : ControlMode::Follow, sequence);
        for (int step = 0; step < 20; ++step) {
            ASSERT_TRUE(episode.act(seen));
        }
    }
    ASSERT_TRUE(obeys(agent, 39));
    EXPECT_EQ(agent.health().off, "control");
}

}  // namespace
}  // namespace rl4sys::testing::control
