#include <gtest/gtest.h>

#include "client/fake_server.hpp"
#include "counted_allocations.hpp"

namespace rl4sys::testing {
namespace {

TEST(Allocation, ActingRecordingAndRewardingAllocateNothingInSteadyState) {
    const auto server = std::make_shared<FakeServer>(small_policy(true));
    ClientSettings settings = quick_settings();
    settings.max_segment_length = 16;
    settings.reward_window = 4;
    server->record_share = 0.5;  // Some spans are thinned.
    Agent agent = connect_to(server, settings);
    Episode episode = agent.episode();
    const std::array<float, 2> seen{1, 2};
    const std::array<bool, 3> mask{true, false, true};
    const auto act = [&](int steps) {
        for (int step = 0; step < steps; ++step) {
            static_cast<void>(episode.act({{"observation", seen}, {"action_mask", mask}}));
            static_cast<void>(episode.act(seen, mask));
            episode.reward(0.5);
        }
    };
    {
        // Warm up until there are as many buffers of full length as the largest burst needs.
        std::vector<Episode> busy;
        for (int number = 0; number < 20; ++number) {
            busy.push_back(agent.episode());
            for (std::size_t step = 0; step < settings.max_segment_length; ++step) {
                ASSERT_TRUE(busy.back().act(seen, mask));
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

}  // namespace
}  // namespace rl4sys::testing
