#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>

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

TEST(Digest, OfEveryLengthOfItsLastBlock) {
    const std::map<std::size_t, std::string> expected = {
        {55, "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318"},
        {56, "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a"},
        {64, "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb"},
        {119, "31eba51c313a5c08226adf18d4a359cfdfd8d2e816b13f4af952f7ea6584dcfb"},
        {1000, "41edece42d63e8d9bf515a9ba6932e1c20cbc9f5a5d134645adb5db1b9737ea3"},
    };
    for (const auto& [length, digest] : expected) {
        const std::string text(length, 'a');
        EXPECT_EQ(to_hex(sha256(text.data(), text.size())), digest) << length;
    }
}

TEST(Weights, NaNAndInfinityAreFound) {
    EXPECT_TRUE(all_finite({1.0F, -3e38F, 0.0F}));
    EXPECT_FALSE(all_finite({1.0F, NAN}));
    EXPECT_FALSE(all_finite({-INFINITY}));
}

}  // namespace
}  // namespace rl4sys
