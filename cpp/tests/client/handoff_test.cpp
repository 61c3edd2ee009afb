#include "client/handoff.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "client/fake_server.hpp"

namespace rl4sys::client {
namespace {

const auto form = std::make_shared<const wire::SegmentFormat>(wire::format_of(testing::small_policy()));

std::unique_ptr<Draft> draft(std::uint64_t episode) {
    auto made = std::make_unique<Draft>(form, 4);
    made->episode = episode;
    return made;
}

TEST(Handoff, DropsByItsPolicyAndCounts) {
    Tally tally;
    Handoff oldest(2 * draft(0)->cost(), Overflow::DropOldest, tally);
    for (std::uint64_t episode = 0; episode < 3; ++episode) {
        oldest.post(draft(episode));
    }
    EXPECT_EQ(oldest.waiting(), 2U);
    EXPECT_EQ(oldest.take()->episode, 1U);
    Handoff newest(2 * draft(0)->cost(), Overflow::DropNewest, tally);
    for (std::uint64_t episode = 0; episode < 3; ++episode) {
        newest.post(draft(episode));
    }
    EXPECT_EQ(newest.take()->episode, 0U);
    EXPECT_EQ(tally.drops().at("overflow_oldest"), 1U);
    EXPECT_EQ(tally.drops().at("overflow_newest"), 1U);
}

TEST(Handoff, ABlockedThreadGoesOnWhenThereIsRoom) {
    Tally tally;
    Handoff handoff(draft(0)->cost(), Overflow::Block, tally);
    handoff.post(draft(0));
    std::thread second([&] { handoff.post(draft(1)); });
    EXPECT_EQ(handoff.take()->episode, 0U);
    EXPECT_EQ(handoff.take()->episode, 1U);
    second.join();
    EXPECT_TRUE(tally.drops().empty());
}

TEST(Handoff, ColumnsAreUsedAgainWhereTheyFit) {
    Tally tally;
    Handoff handoff(1 << 20, Overflow::Block, tally);
    std::unique_ptr<Draft> used = handoff.blank(form, 4);
    const Draft* which = used.get();
    handoff.give_back(std::move(used));
    EXPECT_EQ(handoff.blank(form, 4).get(), which);
}

TEST(Handoff, ClosingEndsEveryWait) {
    Tally tally;
    Handoff handoff(draft(0)->cost(), Overflow::Block, tally);
    handoff.post(draft(0));
    std::thread second([&] { handoff.post(draft(1)); });
    handoff.close();
    second.join();
    EXPECT_EQ(handoff.take()->episode, 0U);
    // The thread may have been let in before, or turned away.
    const auto late = handoff.take();
    EXPECT_EQ(late == nullptr, tally.drops().count("unsent_at_close") == 1);
}

}  // namespace
}  // namespace rl4sys::client
