#include "cache/lru_guard.hpp"

#include <gtest/gtest.h>

#include "cache/learned_cache.hpp"
#include "cache/rivals.hpp"
#include "choosers.hpp"

namespace examples {
namespace {

/// Requests of two pages that fit LRU's cache; every `every`th is a miss of the guarded cache.
void serve(LruGuard& guard, std::uint64_t requests, std::uint64_t every) {
    for (std::uint64_t request = 1; request <= requests; ++request) {
        guard.note(static_cast<Page>(request % 2), request % every != 0);
    }
}

TEST(LruGuard, ItTakesOverAfterFiftyThousandRequestsTwoPointsBelowLru) {
    LruGuard guard(2, 2);
    serve(guard, LruGuard::span - 1, 40);
    EXPECT_FALSE(guard.is_active());
    serve(guard, 1, 40);
    EXPECT_TRUE(guard.is_active());
    EXPECT_EQ(guard.activations(), 1U);
}

TEST(LruGuard, OnePointBelowIsTolerated) {
    LruGuard guard(2, 2);
    serve(guard, 10 * LruGuard::span, 100);
    EXPECT_FALSE(guard.is_active());
    EXPECT_EQ(guard.activations(), 0U);
}

TEST(LruGuard, ThePolicyGetsAnotherChanceAfterAsManyRequests) {
    LruGuard guard(2, 2);
    serve(guard, 2 * LruGuard::span, 10);
    EXPECT_FALSE(guard.is_active());
    serve(guard, LruGuard::span, 10);
    EXPECT_TRUE(guard.is_active());
    EXPECT_EQ(guard.activations(), 2U);
}

TEST(LruGuard, ACacheThatEvictsItsNewestPagesIsRescued) {
    GeneratedTraceSpec spec;
    spec.requests = 200'000;
    spec.drift = 20;
    const Trace trace = generate_trace(spec);
    FeatureChooser newest(0, -1.0F);
    LearnedCache cache(trace.page_count, 1'000, newest, 0);
    const HitRates lru = replay("LRU", *make_rival("LRU", trace, 1'000), trace, 50'000);
    const HitRates guarded = replay("learned", cache, trace, 50'000);
    EXPECT_GE(cache.guard().activations(), 1U);
    EXPECT_GT(cache.guarded_evictions(), 10'000U);
    EXPECT_LT(guarded.block(0), lru.block(0) - 2.0);
    EXPECT_GT(guarded.block(1), lru.block(1) - 2.0);
}

}  // namespace
}  // namespace examples
