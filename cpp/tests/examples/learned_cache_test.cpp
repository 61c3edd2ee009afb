#include "cache/learned_cache.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "cache/rivals.hpp"
#include "choosers.hpp"
#include "letters.hpp"

namespace examples {
namespace {

constexpr std::size_t recency = 0;

TEST(LearnedCache, AVictimThatReturnsSoonIsRegrettedOnce) {
    FeatureChooser oldest(recency, 1.0F);
    LearnedCache cache(26, 1, oldest, 0);
    // b evicts a by decision 1, and a returns at once; it returns again after decision 3 evicted it.
    EXPECT_EQ(served(cache, "abab"), "....");
    EXPECT_EQ(oldest.regretted, (std::vector<std::int64_t>{1, 2}));
}

TEST(LearnedCache, AVictimThatReturnsAfterTwiceTheCapacityIsNotRegretted) {
    FeatureChooser oldest(recency, 1.0F);
    LearnedCache soon(26, 1, oldest, 0);
    served(soon, "abca");
    EXPECT_TRUE(oldest.regretted.empty());
    FeatureChooser other(recency, 1.0F);
    LearnedCache larger(26, 2, other, 0);
    served(larger, "abcdea");
    EXPECT_EQ(other.regretted.size(), 1U);
}

TEST(LearnedCache, WithTheOldestCandidateItIsNearlyLru) {
    GeneratedTraceSpec spec;
    spec.requests = 50'000;
    const Trace trace = generate_trace(spec);
    FeatureChooser oldest(recency, 1.0F);
    LearnedCache cache(trace.page_count, 500, oldest, 0);
    const double lru = replay("LRU", *make_rival("LRU", trace, 500), trace, 10'000).all();
    EXPECT_NEAR(replay("learned", cache, trace, 10'000).all(), lru, 1.5);
    EXPECT_EQ(static_cast<std::uint64_t>(oldest.decisions), cache.evictions());
}

TEST(LearnedCache, EqualSeedsGiveEqualHits) {
    GeneratedTraceSpec spec;
    spec.requests = 20'000;
    const Trace trace = generate_trace(spec);
    FeatureChooser one(recency, 1.0F), two(recency, 1.0F);
    LearnedCache first(trace.page_count, 100, one, 7), second(trace.page_count, 100, two, 7);
    for (const Page page : trace.requests) {
        ASSERT_EQ(first.request(page), second.request(page));
    }
    EXPECT_EQ(one.regretted, two.regretted);
}

TEST(PageHistory, FeaturesAreAroundZeroForAnyAge) {
    PageHistory history(2, 1'000);
    history.insert(0, 1);
    history.hit(0, 2);
    for (const std::uint64_t now : {std::uint64_t{2}, std::uint64_t{1'000}, std::uint64_t{1} << 40}) {
        for (const float feature : history.features(0, now)) {
            EXPECT_TRUE(std::isfinite(feature));
            EXPECT_LT(std::abs(feature), 10.0F);
        }
    }
}

TEST(PageHistory, UsesBeforeAnEvictionAreRememberedForAWhile) {
    constexpr std::size_t total = 4;
    PageHistory history(3, 10);
    history.insert(0, 1);
    history.insert(0, 100);
    history.insert(1, 100);
    EXPECT_GT(history.features(0, 100)[total], history.features(1, 100)[total]);
    history.insert(0, 100 + 161);
    EXPECT_EQ(history.features(0, 261)[total], history.features(1, 261)[total]);
}

}  // namespace
}  // namespace examples
