#include "wire/segment_packs.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace rl4sys::wire {
namespace {

/// Segments of one number and three choices.
struct Sample {
    explicit Sample(std::uint32_t steps) : seen(steps + 1, 0.5F), chosen(steps, 2), earned(steps, 1.0F) {
        view.agent = "agent";
        view.lane = 4;
        view.episode = 1'700'000'000'000'000 + steps;
        view.policy_version = 9;
        view.ending = Ending::Terminated;
        view.steps = steps;
        view.observation = {bytes(seen)};
        view.action = bytes(chosen);
        view.reward = bytes(earned);
    }
    Sample(const Sample&) = delete;
    Sample& operator=(const Sample&) = delete;

    template <typename T>
    static std::string_view bytes(const std::vector<T>& values) {
        return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
    }

    std::vector<float> seen;
    std::vector<std::int64_t> chosen;
    std::vector<float> earned;
    SegmentView view;
};

const SegmentFormat form{{{"observation", ElementType::Float32, {}}}, {"action", ElementType::Int64, {}}, {}, {}, {3}};

TEST(SegmentPacks, EachSegmentIsWhatItIsAlone) {
    const Sample one(1);
    const Sample three(3);
    const std::string pack = encode_pack(form, {one.view, three.view, one.view});
    const std::vector<std::string> alone = split_pack(pack, 3);
    ASSERT_EQ(alone.size(), 3U);
    EXPECT_EQ(alone[0], encode_segment(form, one.view));
    EXPECT_EQ(alone[1], encode_segment(form, three.view));
    EXPECT_EQ(alone[2], alone[0]);
}

TEST(SegmentPacks, OnlySegmentsOfOneVersionShareAPack) {
    const Sample one(1);
    SegmentView other = one.view;
    EXPECT_TRUE(can_share_pack(one.view, other));
    other.policy_version = 10;
    EXPECT_FALSE(can_share_pack(one.view, other));
}

TEST(SegmentPacks, OneBadSegmentIsRefused) {
    Sample one(1);
    const Sample two(2);
    one.earned[0] = std::numeric_limits<float>::infinity();
    EXPECT_THROW(encode_pack(form, {two.view, one.view}), SegmentRefused);
    one.earned[0] = 0.0F;
    one.chosen[0] = 3;
    EXPECT_THROW(encode_pack(form, {two.view, one.view}), SegmentRefused);
}

TEST(SegmentPacks, WhatIsNoPackCannotBeSplit) {
    const Sample one(1);
    const std::string pack = encode_pack(form, {one.view, one.view});
    EXPECT_THROW(split_pack("\xff", 2), ContractViolation);
    EXPECT_THROW(split_pack("", 2), ContractViolation);
    EXPECT_THROW(split_pack(pack, 0), ContractViolation);
    EXPECT_THROW(split_pack(pack, 5), ContractViolation);
    EXPECT_THROW(split_pack(encode_segment(form, one.view), 2), ContractViolation);
}

}  // namespace
}  // namespace rl4sys::wire
