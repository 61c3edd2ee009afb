#include <gtest/gtest.h>

#include <cmath>

#include "rl4sys/weights.hpp"

namespace rl4sys {
namespace {

TEST(Layout, TensorsLieOneAfterTheOther) {
    const Layout layout({{"weight", {2, 3}}, {"none", {0, 5}}, {"scalar", {}}, {"bias", {3}}});
    EXPECT_EQ(layout.size(), 10U);
    EXPECT_EQ(layout.offset("weight"), 0U);
    EXPECT_EQ(layout.offset("none"), 6U);
    EXPECT_EQ(layout.offset("scalar"), 6U);
    EXPECT_EQ(layout.offset("bias"), 7U);
    EXPECT_EQ(layout.shape("weight"), (Shape{2, 3}));
    EXPECT_THROW(layout.offset("gain"), LayoutMismatch);
}

TEST(Layout, NamesDifferAndSizesAreBounded) {
    EXPECT_THROW(Layout({{"twice", {2}}, {"twice", {2}}}), LayoutMismatch);
    EXPECT_THROW(Layout({{"half", {1U << 26}}, {"rest", {(1U << 26) + 1}}}), LayoutMismatch);
    EXPECT_THROW(Layout({{"giant", {0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF}}}), std::invalid_argument);
}

TEST(Digest, IsSha256) {
    EXPECT_EQ(to_hex(sha256("abc", 3)), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    EXPECT_EQ(to_hex(sha256(Weights{})), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST(Weights, NaNAndInfinityAreFound) {
    EXPECT_TRUE(all_finite({1.0F, -3e38F, 0.0F}));
    EXPECT_FALSE(all_finite({1.0F, NAN}));
    EXPECT_FALSE(all_finite({-INFINITY}));
}

}  // namespace
}  // namespace rl4sys
