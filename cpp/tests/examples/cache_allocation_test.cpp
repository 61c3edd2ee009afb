#include <gtest/gtest.h>

#include "cache/agent_chooser.hpp"
#include "cache/learned_cache.hpp"
#include "cache_policy.hpp"
#include "client/fake_server.hpp"
#include "counted_allocations.hpp"

namespace examples {
namespace {

using namespace rl4sys::testing;

TEST(LearnedCache, ServingRequestsAllocatesNothing) {
    const auto server = std::make_shared<FakeServer>(cache_policy());
    rl4sys::ClientSettings settings = quick_settings();
    settings.max_segment_length = 16;
    settings.reward_window = 40;
    rl4sys::Agent agent = connect_to(server, settings);
    AgentChooser chooser(agent);
    const Trace trace = generate_trace({});
    LearnedCache cache(trace.page_count, 20, chooser, 0);
    std::size_t served = 0;
    const auto serve = [&](std::size_t requests) {
        for (const std::size_t end = served + requests; served < end;) cache.request(trace.requests[served++]);
    };
    // Warm up until there are buffers for the largest burst.
    serve(2'000);
    for (int round = 0; round < 20; ++round) {
        ASSERT_TRUE(agent.flush());
        count_allocations(true);
        serve(50);
        count_allocations(false);
        EXPECT_EQ(counted_allocations(), 0U);
    }
    EXPECT_GT(cache.evictions(), 500U);
}

}  // namespace
}  // namespace examples
