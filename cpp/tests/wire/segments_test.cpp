#include "wire/segments.hpp"

#include <gtest/gtest.h>
#include <rl4sys/v1/experience.pb.h>

#include <cmath>
#include <limits>

namespace rl4sys::wire {
namespace {

template <typename T>
std::string_view bytes(const std::vector<T>& values) {
    return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

struct Sample {
    std::vector<float> observation{1, 2, 3, 4, 5, 6};
    std::vector<std::int64_t> action{2, 0};
    std::vector<float> reward{0.5F, -1};
    std::vector<float> log_prob{-0.1F, -0.2F};
    SegmentFormat form{{{"observation", ElementType::Float32, {2}}},
                       {"action", ElementType::Int64, {}},
                       {{"log_prob", ElementType::Float32, {}}},
                       {},
                       {3}};

    SegmentView view() const {
        SegmentView view;
        view.agent = "agent";
        view.lane = 4;
        view.episode = 1'700'000'000'000'000;
        view.start = 16;
        view.policy_version = 9;
        view.ending = Ending::Truncated;
        view.steps = 2;
        view.observation = {bytes(observation)};
        view.action = bytes(action);
        view.reward = bytes(reward);
        view.extras = {bytes(log_prob)};
        return view;
    }
};

TEST(Segments, ColumnsHaveTheAgreedOrderAndActionsAreNarrow) {
    const Sample sample;
    v1::Segment message;
    ASSERT_TRUE(message.ParseFromString(encode_segment(sample.form, sample.view())));
    EXPECT_EQ(message.agent(), "agent");
    EXPECT_EQ(message.steps(), 2U);
    EXPECT_EQ(message.ending(), v1::ENDING_TRUNCATED);
    ASSERT_EQ(message.columns_size(), 4);
    EXPECT_EQ(message.columns(0), bytes(sample.observation));
    EXPECT_EQ(message.columns(1), std::string("\x02\x00", 2));
    EXPECT_EQ(message.columns(2), bytes(sample.reward));
    EXPECT_EQ(message.columns(3), bytes(sample.log_prob));
}

TEST(Segments, ChoicesAreEncodedInTheSmallestType) {
    EXPECT_EQ(choice_bytes({1}), 1U);
    EXPECT_EQ(choice_bytes({256, 3}), 1U);
    EXPECT_EQ(choice_bytes({257}), 2U);
    EXPECT_EQ(choice_bytes({65537}), 4U);
    EXPECT_EQ(choice_bytes({(std::uint64_t{1} << 32) + 1}), 8U);
}

TEST(Segments, InvalidSegmentsAreRefused) {
    Sample sample;
    sample.reward[1] = std::numeric_limits<float>::infinity();
    EXPECT_THROW(encode_segment(sample.form, sample.view()), SegmentRefused);
    sample.reward[1] = 0;
    sample.log_prob[0] = std::nanf("");
    EXPECT_THROW(encode_segment(sample.form, sample.view()), SegmentRefused);
    sample.log_prob[0] = 0;
    sample.action[0] = 3;
    EXPECT_THROW(encode_segment(sample.form, sample.view()), SegmentRefused);
    sample.action[0] = -1;
    EXPECT_THROW(encode_segment(sample.form, sample.view()), SegmentRefused);
    sample.action[0] = 1;
    sample.observation.pop_back();
    EXPECT_THROW(encode_segment(sample.form, sample.view()), SegmentRefused);
}

}  // namespace
}  // namespace rl4sys::wire
