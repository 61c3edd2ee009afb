#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cache/report.hpp"

namespace examples {
namespace {

/// Seven requests in blocks of three: misses, then hits from the fourth on.
HitRates counted() {
    HitRates rates("LRU", 7, 3);
    for (int request = 0; request < 7; ++request) {
        rates.count(request >= 3);
    }
    return rates;
}

TEST(HitRates, TheLastBlockMayBeShorter) {
    const HitRates rates = counted();
    ASSERT_EQ(rates.block_count(), 3U);
    EXPECT_DOUBLE_EQ(rates.block(0), 0.0);
    EXPECT_DOUBLE_EQ(rates.block(1), 100.0);
    EXPECT_DOUBLE_EQ(rates.block(2), 100.0);
    EXPECT_DOUBLE_EQ(rates.all(), 400.0 / 7);
    EXPECT_DOUBLE_EQ(rates.second_half(), 100.0);
}

TEST(HitRates, AnInterruptedReplayHasTheRatesOfWhatWasServed) {
    HitRates rates("LRU", 1'000, 100);
    EXPECT_DOUBLE_EQ(rates.all(), 0.0);
    rates.count(true);
    EXPECT_DOUBLE_EQ(rates.all(), 100.0);
    EXPECT_DOUBLE_EQ(rates.second_half(), 0.0);
}

TEST(HitRates, TheTableHasAColumnForEachCache) {
    const std::vector<HitRates> rates{counted(), counted()};
    EXPECT_EQ(table_header(rates), "    requests       LRU       LRU\n");
    EXPECT_EQ(table_row(rates, 1, 6), "           6   100.00%   100.00%\n");
}

TEST(HitRates, TheJsonHasEveryBlock) {
    CacheReport report{"disk.lis", 7, 5, 2, 3, {counted()}, LearnedReport{}};
    const auto read = nlohmann::json::parse(report_json(report));
    EXPECT_EQ(read.at("hit_rates").at("LRU").at("blocks"), (std::vector<double>{0.0, 100.0, 100.0}));
    EXPECT_EQ(read.at("learned").at("guard_activations"), 0);
    report.learned.reset();
    EXPECT_FALSE(nlohmann::json::parse(report_json(report)).contains("learned"));
}

}  // namespace
}  // namespace examples
