#include "wire/patches.hpp"

#include <gtest/gtest.h>

#include <deque>

namespace rl4sys::wire {
namespace {

PatchHeader header() {
    PatchHeader header;
    header.target = 5;
    header.encoding = 1;
    header.size = 2;
    header.sha256 = std::string(32, 'h');
    header.payload_bytes = 8;
    return header;
}

Patch decode(std::deque<PatchChunk> chunks) {
    return decode_patch(
        [&]() -> std::optional<PatchChunk> {
            if (chunks.empty()) {
                return std::nullopt;
            }
            PatchChunk first = std::move(chunks.front());
            chunks.pop_front();
            return first;
        },
        2);
}

TEST(Patches, ChunksAreJoined) {
    const Patch patch = decode({{header(), "abc"}, {std::nullopt, "defgh"}});
    EXPECT_EQ(patch.payload, "abcdefgh");
    EXPECT_EQ(patch.target, 5U);
    EXPECT_FALSE(patch.base);
    EXPECT_EQ(patch.encoding, Encoding::Raw);
}

TEST(Patches, InvalidMessagesAreRefused) {
    EXPECT_THROW(decode({}), ContractViolation);
    EXPECT_THROW(decode({{std::nullopt, "abcdefgh"}}), ContractViolation);
    EXPECT_THROW(decode({{header(), "abc"}}), ContractViolation);
    EXPECT_THROW(decode({{header(), "abcdefghi"}}), ContractViolation);
    EXPECT_THROW(decode({{header(), "abc"}, {header(), "defgh"}}), ContractViolation);
    EXPECT_THROW(decode({{header(), "abc"}, {std::nullopt, ""}, {std::nullopt, "defgh"}}), ContractViolation);
    for (const auto& spoil : std::vector<void (*)(PatchHeader&)>{
             [](PatchHeader& h) { h.size = 3; },
             [](PatchHeader& h) { h.encoding = 0; },
             [](PatchHeader& h) { h.encoding = 4; },
             [](PatchHeader& h) { h.base = 4; },
             [](PatchHeader& h) { h.encoding = 3; },
             [](PatchHeader& h) { h.sha256 = "short"; },
             [](PatchHeader& h) { h.target = std::uint64_t{1} << 63; },
             [](PatchHeader& h) { h.payload_bytes = std::uint64_t{1} << 40; },
         }) {
        PatchHeader spoiled = header();
        spoil(spoiled);
        EXPECT_THROW(decode({{spoiled, "abcdefgh"}}), ContractViolation);
    }
}

}  // namespace
}  // namespace rl4sys::wire
