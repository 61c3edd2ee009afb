#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <stdexcept>
#include <thread>
#include <vector>

#include "client/fake_server.hpp"

namespace rl4sys::testing {
namespace {

TEST(Threads, ManyThreadsShareAnAgentAndNothingIsLost) {
    const auto server = std::make_shared<FakeServer>();
    ClientSettings settings = quick_settings();
    settings.max_segment_length = 7;
    settings.reward_window = 2;
    settings.overflow = Overflow::Block;
    Agent agent = connect_to(server, settings);
    constexpr int actors = 4;
    constexpr int episodes = 25;
    constexpr int steps = 20;
    std::vector<std::thread> threads;
    std::atomic<int> failures = 0;
    for (int actor = 0; actor < actors; ++actor) {
        threads.emplace_back([&] {
            for (int number = 0; number < episodes; ++number) {
                Episode episode = agent.episode();
                for (int step = 0; step < steps; ++step) {
                    failures += episode.act(std::array<float, 2>{1, static_cast<float>(step)}) ? 0 : 1;
                    episode.reward(1.0);
                }
                episode.end(std::array<float, 2>{0, 0});
            }
        });
    }
    threads.emplace_back([&] {
        for (int version = 0; version < 50; ++version) {
            server->publish(static_cast<float>(version));
            static_cast<void>(agent.health());
        }
    });
    for (std::thread& thread : threads) {
        thread.join();
    }
    EXPECT_EQ(failures, 0);
    ASSERT_TRUE(agent.flush());
    std::size_t stored = 0;
    float rewards = 0;
    for (const v1::Segment& segment : server->segments()) {
        stored += segment.steps();
        for (const float reward : column<float>(segment, 2)) {
            rewards += reward;
        }
    }
    EXPECT_EQ(stored, static_cast<std::size_t>(actors * episodes * steps));
    EXPECT_EQ(rewards, static_cast<float>(actors * episodes * steps));
    EXPECT_EQ(agent.health().decisions, stored);
    EXPECT_TRUE(agent.health().drops.empty());
}

TEST(Threads, RewardsMayComeFromAnotherThread) {
    const auto server = std::make_shared<FakeServer>();
    Agent agent = connect_to(server);
    Episode episode = agent.episode();
    episode.act(std::array<float, 2>{1, 2});
    std::thread other([&] {
        for (int count = 0; count < 500; ++count) {
            episode.reward(1.0, 0);
        }
    });
    for (int step = 0; step < 100; ++step) {
        episode.act(std::array<float, 2>{1, 2});
    }
    other.join();
    episode.end(std::array<float, 2>{0, 0});
    ASSERT_TRUE(agent.flush());
    EXPECT_EQ(column<float>(server->segments()[0], 2)[0], 500.0F);
}

TEST(Threads, AForkedProcessIsRefusedAndItsParentContinues) {
    const auto server = std::make_shared<FakeServer>();
    Agent agent = connect_to(server);
    Episode episode = agent.episode();
    const pid_t child = ::fork();
    if (child == 0) {
        const bool refused = episode.act(std::array<float, 2>{1, 2}).problem() == Problem::Forked;
        ::_exit(refused ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(WEXITSTATUS(status), 0);
    EXPECT_TRUE(episode.act(std::array<float, 2>{1, 2}));
}

TEST(Threads, EveryCallOfAForkedProcessIsRefused) {
    const auto server = std::make_shared<FakeServer>();
    Agent agent = connect_to(server);
    Episode episode = agent.episode();
    ASSERT_TRUE(episode.act(std::array<float, 2>{1, 2}));
    const pid_t child = ::fork();
    if (child == 0) {
        int refused = 0;
        const std::vector<std::function<void()>> calls{[&] { static_cast<void>(agent.episode()); },
                                                       [&] { static_cast<void>(agent.health()); },
                                                       [&] { static_cast<void>(agent.flush(1.0)); },
                                                       [&] { agent.set_level(ClientLevel::Decide); },
                                                       [&] { episode.reward(1.0); },
                                                       [&] { episode.end(); }};
        for (const auto& call : calls) {
            try {
                call();
            } catch (const std::logic_error&) {
                ++refused;
            }
        }
        agent.close();
        const bool silent = episode.ended() && episode.decision() == -1 && !agent.has_policy();
        ::_exit(silent ? refused : 99);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(WEXITSTATUS(status), 6);
    EXPECT_EQ(agent.health().decisions, 1U);
}

TEST(Threads, WhatWasMovedFromIsHarmless) {
    const auto server = std::make_shared<FakeServer>();
    Agent agent = connect_to(server);
    Episode from = agent.episode();
    Episode episode = std::move(from);
    // NOLINTBEGIN(bugprone-use-after-move): that is what is tested.
    EXPECT_EQ(from.act(std::array<float, 2>{1, 2}).problem(), Problem::EpisodeEnded);
    EXPECT_THROW(from.reward(1.0), std::logic_error);
    EXPECT_NO_THROW(from.end());
    EXPECT_TRUE(from.ended());
    EXPECT_EQ(from.decision(), -1);
    EXPECT_TRUE(episode.act(std::array<float, 2>{1, 2}));
    Agent other = std::move(agent);
    EXPECT_THROW(static_cast<void>(agent.episode()), std::logic_error);
    EXPECT_THROW(static_cast<void>(agent.health()), std::logic_error);
    EXPECT_FALSE(agent.has_policy());
    EXPECT_NO_THROW(agent.close());
    // NOLINTEND(bugprone-use-after-move)
    EXPECT_EQ(other.health().decisions, 1U);
}

/// The background threads that have named themselves; each must block SIGTERM.
int named_threads() {
    int found = 0;
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
        std::ifstream name_file(task.path() / "comm");
        std::ifstream status_file(task.path() / "status");
        const std::string name{std::istreambuf_iterator<char>(name_file), {}};
        const std::string status{std::istreambuf_iterator<char>(status_file), {}};
        if (name.rfind("rl4sys-", 0) != 0) {
            continue;
        }
        ++found;
        // The mask has a bit for each signal; SIGTERM's is 0x4000.
        const std::string mask = status.substr(status.find("SigBlk:") + 8, 16);
        EXPECT_NE(std::stoull(mask, nullptr, 16) & 0x4000U, 0U) << name;
    }
    return found;
}

TEST(Threads, BackgroundThreadsAreNamedAndTakeNoSignals) {
    const auto server = std::make_shared<FakeServer>();
    const Agent agent = connect_to(server);
    // A thread gets its name once it runs.
    EXPECT_TRUE(eventually([] { return named_threads() == 4; }));
}

}  // namespace
}  // namespace rl4sys::testing
