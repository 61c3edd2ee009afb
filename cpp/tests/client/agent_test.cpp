#include <gtest/gtest.h>

#include <atomic>

#include "client/fake_server.hpp"
#include "records/temporary.hpp"

namespace rl4sys::testing {
namespace {

const std::vector<float> seen{1.0F, 2.0F};

void record_one(Agent& agent) {
    Episode episode = agent.episode();
    episode.act(seen);
    episode.end(seen);
}

TEST(Agent, JoinsWithItsNameAndWhatItCanRun) {
    const auto server = std::make_shared<FakeServer>();
    const Agent agent = connect_to(server);
    EXPECT_EQ(server->last_join.client, "tester");
    EXPECT_EQ(server->last_join.software.rfind("rl4sys-cpp/", 0), 0U);
    EXPECT_NE(server->last_join.software.find(std::string(" (native-") + kernel_set() + ")"), std::string::npos);
    EXPECT_FALSE(server->last_join.ops.empty());
    const Health health = agent.health();
    EXPECT_TRUE(health.connected);
    EXPECT_EQ(health.learner, "learner");
    EXPECT_EQ(health.version, 0U);
}

TEST(Agent, WithoutAServerConnectFailsUnlessThereIsAFallback) {
    const auto server = std::make_shared<FakeServer>();
    server->set_down(true);
    ClientSettings settings = quick_settings();
    settings.timeout = 0.2;
    EXPECT_THROW(connect_to(server, settings), ConnectError);
    const auto later = std::make_shared<FakeServer>();
    later->set_down(true);
    Agent agent = connect_to(later, settings, [](const Observation& observation) {
        return FallbackAction(static_cast<std::int64_t>(observation[0].array.size()));
    });
    Episode episode = agent.episode();
    const Action action = episode.act(seen);
    EXPECT_EQ(action.choice(), 2);
    EXPECT_TRUE(action.is_fallback());
    episode.reward(1.0);
    EXPECT_EQ(agent.health().fallback_decisions, 1U);
    later->set_down(false);
    ASSERT_TRUE(eventually([&] { return agent.has_policy(); }));
    EXPECT_FALSE(episode.act(seen).is_fallback());
    episode.end(seen);
    ASSERT_TRUE(agent.flush());
    EXPECT_EQ(later->segments()[0].start(), 1U) << "the fallback's decision is not recorded";
}

TEST(Agent, SegmentsOfALostReplyAreResentWithTheSameKey) {
    const auto server = std::make_shared<FakeServer>();
    Agent agent = connect_to(server);
    server->lose_next_answer = true;
    record_one(agent);
    ASSERT_TRUE(agent.flush());
    EXPECT_EQ(server->pushes, 2);
    EXPECT_EQ(server->stored.size(), 1U);
    EXPECT_EQ(agent.health().acknowledged, 1U);
}

TEST(Agent, ContinuesDuringAnOutageAndRejoinsAfterARestart) {
    const auto server = std::make_shared<FakeServer>();
    Agent agent = connect_to(server);
    server->set_down(true);
    server->forget_sessions();
    for (int episode = 0; episode < 5; ++episode) {
        record_one(agent);
    }
    ASSERT_TRUE(eventually([&] { return agent.health().backlog == 5 && !agent.health().connected; }));
    server->set_down(false);
    EXPECT_TRUE(server->wait_for_segments(5));
    EXPECT_TRUE(agent.flush());
    EXPECT_GE(server->joins, 2);
    server->publish(0.5F);
    EXPECT_TRUE(eventually([&] { return agent.health().version == 1U; }));
}

TEST(Agent, ADamagedPatchIsPulledInFull) {
    const auto server = std::make_shared<FakeServer>();
    const Agent agent = connect_to(server);
    const int pulls = server->pulls;
    server->publish(0.5F, true);
    ASSERT_TRUE(eventually([&] { return agent.health().version == 1U; }));
    EXPECT_EQ(agent.health().damaged_patches, 1U);
    EXPECT_EQ(server->pulls, pulls + 1);
}

TEST(Agent, ClosingTruncatesOpenEpisodesAndSendsTheBacklog) {
    const auto server = std::make_shared<FakeServer>();
    Agent agent = connect_to(server);
    Episode episode = agent.episode();
    episode.act(seen);
    episode.act(seen);
    agent.close();
    EXPECT_TRUE(episode.ended());
    EXPECT_EQ(episode.act(seen).problem(), Problem::EpisodeEnded);
    EXPECT_THROW(agent.episode(), std::logic_error);
    EXPECT_EQ(server->segments().size(), 1U);
    agent.close();
}

TEST(Agent, UnsentSegmentsAreCountedOrKeptOnDisk) {
    const TemporaryDirectory directory;
    for (const bool on_disk : {false, true}) {
        const auto server = std::make_shared<FakeServer>();
        ClientSettings settings = quick_settings();
        if (on_disk) {
            settings.outbox = directory.path() / "outbox";
        }
        Agent agent = connect_to(server, settings);
        server->set_down(true);
        record_one(agent);
        agent.close(0.1);
        EXPECT_EQ(agent.health().drops.count("unsent_at_close"), on_disk ? 0U : 1U);
    }
    const auto server = std::make_shared<FakeServer>();
    ClientSettings settings = quick_settings();
    settings.outbox = directory.path() / "outbox";
    Agent agent = connect_to(server, settings);
    EXPECT_TRUE(server->wait_for_segments(1)) << "the next start sends it";
}

TEST(Agent, ARefusalStopsSendingButNotDecisionsUntilItIsLifted) {
    class Refusing : public FakeServer {
    public:
        std::atomic<bool> refuses = true;
        wire::PushReply push(const wire::PushRequest& request, double timeout) override {
            if (refuses) {
                throw wire::CallFailed(wire::Code::PermissionDenied, "not yours");
            }
            return FakeServer::push(request, timeout);
        }
    };
    const auto server = std::make_shared<Refusing>();
    Agent agent = connect_to(server);
    record_one(agent);
    ASSERT_TRUE(eventually([&] { return agent.health().stopped == "not yours"; }));
    EXPECT_FALSE(agent.flush(0.5));
    Episode episode = agent.episode();
    EXPECT_TRUE(episode.act(seen));
    server->refuses = false;
    ASSERT_TRUE(server->wait_for_segments(1));
    ASSERT_TRUE(eventually([&] { return agent.health().stopped.empty(); }));
}

TEST(Agent, AnUnknownVersionDoesNotPreventLaterOnes) {
    const auto server = std::make_shared<FakeServer>();
    const Agent agent = connect_to(server);
    server->exaggerate_next = true;
    server->publish(0.5F);
    ASSERT_TRUE(eventually([&] { return agent.health().version == std::uint64_t{1} << 60; }));
    server->publish(0.75F);
    ASSERT_TRUE(eventually([&] { return agent.health().version == 2U; }));
}

}  // namespace
}  // namespace rl4sys::testing
