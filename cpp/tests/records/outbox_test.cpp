#include "records/outbox.hpp"

#include <gtest/gtest.h>

namespace rl4sys::records {
namespace {

OutboxLimits limits(std::size_t parcels, Overflow overflow, std::size_t window = 64) {
    return {parcels * (parcel_overhead + 10), overflow, window};
}

std::string payload(char letter) {
    return std::string(10, letter);
}

std::string letters(const std::vector<Parcel>& parcels) {
    std::string text;
    for (const Parcel& parcel : parcels) {
        text += parcel.payload->front();
    }
    return text;
}

TEST(Outbox, ParcelsAreSentInOrderAndSettledOnce) {
    Outbox outbox(1);
    outbox.offer(payload('a'));
    outbox.offer(payload('b'));
    EXPECT_EQ(letters(outbox.take(1000)), "ab");
    EXPECT_EQ(outbox.in_flight(), 2U);
    EXPECT_TRUE(outbox.acknowledge({1, 0}));
    EXPECT_FALSE(outbox.acknowledge({1, 0}));
    EXPECT_EQ(outbox.backlog(), 1U);
    EXPECT_EQ(outbox.backlog_bytes(), parcel_overhead + 10);
}

TEST(Outbox, ParcelsInFlightAreResentFirst) {
    Outbox outbox(1, limits(10, Overflow::Block, 2));
    for (const char letter : {'a', 'b', 'c'}) {
        outbox.offer(payload(letter));
    }
    EXPECT_EQ(letters(outbox.take(1000)), "ab");
    EXPECT_TRUE(outbox.take(1000).empty()) << "the window is full";
    outbox.disconnected();
    EXPECT_EQ(outbox.in_flight(), 0U);
    EXPECT_EQ(letters(outbox.take(1000)), "ab");
    EXPECT_EQ(letters(outbox.unsettled()), "abc");
}

TEST(Outbox, AMessageHasAtLeastOneParcelAndNoMoreThanFit) {
    Outbox outbox(1);
    outbox.offer(payload('a'));
    outbox.offer(payload('b'));
    outbox.offer(payload('c'));
    EXPECT_EQ(letters(outbox.take(1)), "a");
    EXPECT_EQ(letters(outbox.take(20)), "bc");
}

TEST(Outbox, TheOldestIsDroppedUnlessItIsInFlight) {
    Outbox outbox(1, limits(2, Overflow::DropOldest));
    outbox.offer(payload('a'));
    outbox.offer(payload('b'));
    outbox.take(1);
    const Offer offer = outbox.offer(payload('c'));
    EXPECT_EQ(offer.outcome, OfferOutcome::Accepted);
    EXPECT_EQ(letters(offer.evicted), "b");
    outbox.take(1000);
    EXPECT_EQ(outbox.offer(payload('d')).outcome, OfferOutcome::Dropped) << "everything is in flight";
    EXPECT_EQ(outbox.drops(), (Drops{{"overflow_newest", 1}, {"overflow_oldest", 1}}));
}

TEST(Outbox, AFullOutboxDropsTheNewestOrBlocks) {
    Outbox newest(1, limits(1, Overflow::DropNewest));
    newest.offer(payload('a'));
    EXPECT_EQ(newest.offer(payload('b')).outcome, OfferOutcome::Dropped);
    Outbox block(1, limits(1, Overflow::Block));
    block.offer(payload('a'));
    EXPECT_EQ(block.offer(payload('b')).outcome, OfferOutcome::Full);
    EXPECT_TRUE(block.drops().empty());
    EXPECT_EQ(block.offer(std::string(1000, 'x')).outcome, OfferOutcome::Dropped);
    EXPECT_EQ(block.drops(), (Drops{{"too_large", 1}}));
}

TEST(Outbox, ARefusalIsCountedUnderItsReason) {
    Outbox outbox(1);
    outbox.offer(payload('a'));
    EXPECT_TRUE(outbox.refuse({1, 0}, "not_finite"));
    EXPECT_FALSE(outbox.refuse({1, 0}, "not_finite"));
    EXPECT_EQ(outbox.drops(), (Drops{{"not_finite", 1}}));
}

TEST(Outbox, ParcelsOfAnEarlierStartKeepTheirKeysAndAreSentFirst) {
    const Parcel earlier{{5, 3}, std::make_shared<const std::string>(payload('z'))};
    Outbox outbox(6, {}, {earlier});
    outbox.offer(payload('a'));
    EXPECT_EQ(letters(outbox.take(1000)), "za");
    EXPECT_TRUE(outbox.acknowledge({5, 3}));
    EXPECT_THROW(Outbox(5, {}, {earlier}), std::invalid_argument);
}

}  // namespace
}  // namespace rl4sys::records
