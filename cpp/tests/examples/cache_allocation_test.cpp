#include <gtest/gtest.h>

#include "cache/learned_cache.hpp"
#include "choosers.hpp"
#include "counted_allocations.hpp"

namespace examples {
namespace {

TEST(LearnedCache, ServingRequestsAllocatesNothing) {
    GeneratedTraceSpec spec;
    spec.requests = 20'000;
    const Trace trace = generate_trace(spec);
    FeatureChooser oldest(0, 1.0F);
    LearnedCache cache(trace.page_count, 100, oldest, 0);
    rl4sys::testing::count_allocations(true);
    for (const Page page : trace.requests) {
        cache.request(page);
    }
    rl4sys::testing::count_allocations(false);
    EXPECT_EQ(rl4sys::testing::counted_allocations(), 0U);
}

}  // namespace
}  // namespace examples
