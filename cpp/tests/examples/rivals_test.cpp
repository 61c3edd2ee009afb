#include "cache/rivals.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>

#include "letters.hpp"

namespace examples {
namespace {

std::string served_by(const std::string& name, std::size_t capacity, const std::string& letters) {
    const auto cache = make_rival(name, trace_of(letters), capacity);
    return served(*cache, letters);
}

GeneratedTraceSpec short_spec() {
    GeneratedTraceSpec spec;
    spec.requests = 20'000;
    spec.keys = 1'000;
    spec.drift = 500;
    spec.scan_every = 2'000;
    spec.scan_length = 200;
    return spec;
}

TEST(Rivals, LruEvictsTheLeastRecentlyUsedPage) {
    EXPECT_EQ(served_by("LRU", 2, "abacba"), "..h...");
}

TEST(Rivals, BeladyEvictsThePageThatIsNeededLast) {
    EXPECT_EQ(served_by("Belady", 2, "abacba"), "..h.h.");
}

TEST(Rivals, LfuKeepsThePageThatWasUsedMoreOften) {
    EXPECT_EQ(served_by("LFU", 2, "aabca"), ".h..h");
}

TEST(Rivals, LfuForgetsAPageThatWasPopularLongAgo) {
    // The ages of the victims b, c and d are 1, 2 and 3: as much as the uses of a.
    EXPECT_EQ(served_by("LFU", 2, "aaabcdea"), ".hh.....");
}

TEST(Rivals, ArcKeepsPagesThatWereUsedTwiceThroughAScan) {
    EXPECT_EQ(served_by("ARC", 2, "aabcda"), ".h...h");
}

TEST(Rivals, ArcGivesRecentPagesMoreRoomWhenOneReturns) {
    // c was evicted among the pages used once and returns: now a, used twice, has to leave instead of d.
    EXPECT_EQ(served_by("ARC", 2, "aabcdacd"), ".h...h.h");
}

TEST(Rivals, SieveSparesAPageThatWasUsedAgain) {
    EXPECT_EQ(served_by("SIEVE", 3, "abcadea"), "...h..h");
}

TEST(Rivals, SieveContinuesWhereItsHandStopped) {
    // f evicts d, since the hand has passed a, b and c.
    EXPECT_EQ(served_by("SIEVE", 3, "abcadeafaed"), "...h..h.hh.");
}

TEST(Rivals, S3FifoKeepsAPageThatReturnedThroughAScan) {
    EXPECT_EQ(served_by("S3-FIFO", 10, "abcdefghijkalmnopqrstua").back(), 'h');
    EXPECT_EQ(served_by("LRU", 10, "abcdefghijkalmnopqrstua").back(), '.');
}

TEST(Rivals, LruHasTheHitsOfAQueueThatIsSearched) {
    const Trace trace = generate_trace(short_spec());
    const auto lru = make_rival("LRU", trace, 50);
    std::deque<Page> queue;
    for (const Page page : trace.requests) {
        const auto found = std::find(queue.begin(), queue.end(), page);
        const bool hit = found != queue.end();
        if (hit) queue.erase(found);
        queue.push_front(page);
        if (queue.size() > 50) queue.pop_back();
        ASSERT_EQ(lru->request(page), hit);
    }
}

TEST(Rivals, NoneIsBetterThanBelady) {
    const Trace trace = generate_trace(short_spec());
    for (const std::size_t capacity : {1, 2, 10, 100}) {
        const double bound = replay("Belady", *make_rival("Belady", trace, capacity), trace, 1'000).all();
        for (const std::string& name : rival_names()) {
            const double rate = replay(name, *make_rival(name, trace, capacity), trace, 1'000).all();
            EXPECT_LE(rate, bound) << name << " with " << capacity << " pages";
            EXPECT_GT(rate, 0.0) << name << " with " << capacity << " pages";
        }
    }
}

TEST(Rivals, EveryCacheThatHoldsAllPagesMissesEachOnce) {
    const Trace trace = generate_trace(short_spec());
    for (const std::string& name : rival_names()) {
        const auto cache = make_rival(name, trace, trace.page_count);
        const auto hits = std::count_if(trace.requests.begin(), trace.requests.end(),
                                        [&](Page page) { return cache->request(page); });
        EXPECT_EQ(static_cast<std::size_t>(hits), trace.requests.size() - trace.page_count) << name;
    }
}

TEST(Rivals, AnUnknownNameIsRefusedWithTheKnownOnes) {
    try {
        make_rival("LIFO", trace_of("ab"), 1);
        FAIL();
    } catch (const std::invalid_argument& error) {
        EXPECT_STREQ(error.what(), "There is no cache 'LIFO'; expected LRU, LFU, ARC, SIEVE, S3-FIFO or Belady.");
    }
}

}  // namespace
}  // namespace examples
