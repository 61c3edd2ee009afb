#include <gtest/gtest.h>

#include "client/fake_server.hpp"
#include "client/segment_queue.hpp"
#include "counted_allocations.hpp"

namespace rl4sys::testing {
namespace {

const std::array<float, 2> two_numbers{1, 2};

TEST(Allocation, ActingRecordingAndRewardingAllocateNothingInSteadyState) {
    const auto server = std::make_shared<FakeServer>(small_policy(true));
    ClientSettings settings = quick_settings();
    settings.max_segment_length = 16;
    settings.reward_window = 4;
    server->record_share = 0.5;  // Some spans are thinned.
    Agent agent = connect_to(server, settings);
    Episode episode = agent.episode();
    const std::array<bool, 3> mask{true, false, true};
    const auto act = [&](int steps) {
        for (int step = 0; step < steps; ++step) {
            static_cast<void>(episode.act({{"observation", two_numbers}, {"action_mask", mask}}));
            static_cast<void>(episode.act(two_numbers, mask));
            episode.reward(0.5);
        }
    };
    {
        // Warm up until there are as many buffers of full length as the largest burst needs.
        std::vector<Episode> busy;
        for (int number = 0; number < 20; ++number) {
            busy.push_back(agent.episode());
            for (std::size_t step = 0; step < settings.max_segment_length; ++step) {
                ASSERT_TRUE(busy.back().act(two_numbers, mask));
            }
        }
    }
    ASSERT_TRUE(agent.flush());
    act(50);
    for (int round = 0; round < 20; ++round) {
        server->publish(static_cast<float>(round));
        ASSERT_TRUE(eventually([&] { return agent.health().version == static_cast<std::uint64_t>(round) + 1; }));
        ASSERT_TRUE(agent.flush());
        count_allocations(true);
        act(50);
        count_allocations(false);
        EXPECT_EQ(counted_allocations(), 0U);
    }
    EXPECT_EQ(agent.health().decisions, 20U * 16 + 21 * 100);
}

/// How many allocations `work` makes in this thread.
template <typename Work>
std::size_t allocations_of(const Work& work) {
    count_allocations(true);
    work();
    count_allocations(false);
    return counted_allocations();
}

void decide(Episode& episode, int steps) {
    for (int step = 0; step < steps; ++step) {
        static_cast<void>(episode.act(two_numbers));
        episode.reward(0.5);
    }
}

TEST(Allocation, VersionsThatCutSegmentsShortCauseNoneLater) {
    const auto server = std::make_shared<FakeServer>();
    ClientSettings settings = quick_settings();
    settings.max_segment_length = 64;
    settings.reward_window = 4;
    Agent agent = connect_to(server, settings);
    Episode episode = agent.episode();
    std::size_t allocated = 0;
    for (int round = 0; round < 30; ++round) {
        server->publish(static_cast<float>(round));
        ASSERT_TRUE(eventually([&] { return agent.health().version == static_cast<std::uint64_t>(round) + 1; }));
        ASSERT_TRUE(agent.flush());
        // The next version comes after some steps of the second or the third segment.
        const std::size_t now = allocations_of([&] { decide(episode, 66 + 3 * (round % 20)); });
        allocated += round < 10 ? 0 : now;
    }
    EXPECT_EQ(allocated, 0U);
}

TEST(Allocation, EpisodesOfUnevenLengthsCauseNone) {
    ClientSettings settings = quick_settings();
    settings.max_segment_length = 64;
    Agent agent = connect_to(std::make_shared<FakeServer>(), settings);
    std::size_t allocated = 0;
    for (int round = 0; round < 40; ++round) {
        ASSERT_TRUE(agent.flush());
        const std::size_t now = allocations_of([&] {
            Episode episode = agent.episode();
            decide(episode, 1 + 37 * round % 200);
            episode.end();
        });
        allocated += round < 20 ? 0 : now;
    }
    EXPECT_EQ(allocated, 0U);
}

TEST(Allocation, SegmentsThatFinalRewardsCutCauseNone) {
    ClientSettings settings = quick_settings();
    settings.max_segment_length = 256;
    Agent agent = connect_to(std::make_shared<FakeServer>(), settings);
    Episode episode = agent.episode();
    std::size_t allocated = 0;
    for (int round = 0; round < 20; ++round) {
        ASSERT_TRUE(agent.flush());
        const std::size_t now = allocations_of([&] {
            for (int step = 0; step < 50; ++step) {
                const Action action = episode.act(two_numbers, {}, static_cast<double>(50 * round + step));
                episode.reward(0.5, action.decision(), true);
            }
        });
        allocated += round < 10 ? 0 : now;
    }
    EXPECT_EQ(allocated, 0U);
}

TEST(Allocation, BuffersAreFreeAlsoWhenEncodingComesLaterThanEver) {
    const auto form = std::make_shared<const wire::SegmentFormat>(wire::format_of(small_policy()));
    client::AgentStatus status;
    client::SegmentQueue queue(std::size_t{16} << 20, Overflow::Block, status);
    queue.give_back(queue.blank(form, 256, 256));
    queue.replenish();
    std::vector<std::unique_ptr<client::SegmentBuffer>> recorded(64);
    EXPECT_EQ(allocations_of([&] {
                  for (auto& buffer : recorded) {
                      buffer = queue.blank(form, 256, 256);
                  }
              }),
              0U);
}

}  // namespace
}  // namespace rl4sys::testing
