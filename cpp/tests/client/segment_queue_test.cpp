#include "client/segment_queue.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "client/fake_server.hpp"

namespace rl4sys::client {
namespace {

const auto form = std::make_shared<const wire::SegmentFormat>(wire::format_of(testing::small_policy()));

std::unique_ptr<SegmentBuffer> buffer(std::uint64_t episode) {
    auto made = std::make_unique<SegmentBuffer>(form, 4, 1);
    made->episode = episode;
    return made;
}

TEST(SegmentQueue, DropsByItsOverflowPolicyAndCounts) {
    AgentStatus status;
    SegmentQueue oldest(2 * buffer(0)->cost(), Overflow::DropOldest, status);
    for (std::uint64_t episode = 0; episode < 3; ++episode) {
        oldest.post(buffer(episode));
    }
    EXPECT_EQ(oldest.waiting(), 2U);
    EXPECT_EQ(oldest.take()->episode, 1U);
    SegmentQueue newest(2 * buffer(0)->cost(), Overflow::DropNewest, status);
    for (std::uint64_t episode = 0; episode < 3; ++episode) {
        newest.post(buffer(episode));
    }
    EXPECT_EQ(newest.take()->episode, 0U);
    EXPECT_EQ(status.drops().at("overflow_oldest"), 1U);
    EXPECT_EQ(status.drops().at("overflow_newest"), 1U);
}

TEST(SegmentQueue, ABlockedThreadContinuesWhenThereIsSpace) {
    AgentStatus status;
    SegmentQueue queue(buffer(0)->cost(), Overflow::Block, status);
    queue.post(buffer(0));
    std::thread second([&] { queue.post(buffer(1)); });
    EXPECT_EQ(queue.take()->episode, 0U);
    EXPECT_EQ(queue.take()->episode, 1U);
    second.join();
    EXPECT_TRUE(status.drops().empty());
}

TEST(SegmentQueue, BuffersAreReusedWhereTheyFit) {
    AgentStatus status;
    SegmentQueue queue(1 << 20, Overflow::Block, status);
    std::unique_ptr<SegmentBuffer> used = queue.blank(form, 4, 1);
    const SegmentBuffer* which = used.get();
    queue.give_back(std::move(used));
    EXPECT_EQ(queue.blank(form, 4, 1).get(), which);
}

TEST(SegmentQueue, AShortSegmentTakesNoLargeBufferAndALongOneNoSmallBuffer) {
    AgentStatus status;
    SegmentQueue queue(1 << 20, Overflow::Block, status);
    auto large = queue.blank(form, 100, 100);
    auto small = queue.blank(form, 100, 1);
    const SegmentBuffer* which_large = large.get();
    const SegmentBuffer* which_small = small.get();
    queue.give_back(std::move(large));
    queue.give_back(std::move(small));
    EXPECT_EQ(queue.blank(form, 100, 65).get(), which_large);
    EXPECT_EQ(queue.blank(form, 100, 1).get(), which_small);
    EXPECT_EQ(queue.blank(form, 100, 5)->rows(), 16U);
}

TEST(SegmentQueue, ClosingEndsEveryWait) {
    AgentStatus status;
    SegmentQueue queue(buffer(0)->cost(), Overflow::Block, status);
    queue.post(buffer(0));
    std::thread second([&] { queue.post(buffer(1)); });
    queue.close();
    second.join();
    EXPECT_EQ(queue.take()->episode, 0U);
    // The thread may have posted before the queue was closed, or been refused.
    const auto late = queue.take();
    EXPECT_EQ(late == nullptr, status.drops().count("unsent_at_close") == 1);
}

}  // namespace
}  // namespace rl4sys::client
