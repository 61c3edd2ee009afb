#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "golden.hpp"
#include "rl4sys/weights.hpp"

namespace rl4sys {
namespace {

using golden::Case;
using golden::Json;

const std::map<std::string, Case>& cases() {
    static const std::map<std::string, Case> read = golden::read_cases("patches");
    return read;
}

Patch patch_of(const Case& golden) {
    const Json& entry = golden.entry;
    Patch patch;
    if (!entry.at("base").is_null()) patch.base = entry.at("base").get<std::uint64_t>();
    patch.target = entry.at("target");
    patch.encoding = static_cast<Encoding>(entry.at("encoding").get<int>());
    patch.payload = golden.arrays.at("payload").bytes;
    patch.size = entry.at("size");
    const std::string digest = entry.at("sha256");
    for (std::size_t byte = 0; byte < patch.sha256.size(); ++byte) {
        patch.sha256[byte] = static_cast<std::uint8_t>(std::stoul(digest.substr(2 * byte, 2), nullptr, 16));
    }
    return patch;
}

/// The weights that every patch starts from.
Weights base_weights() {
    return cases().at("xor").arrays.at("base").all<float>();
}

class EveryPatch : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryPatch, GivesTheGoldenWeightsOrIsRefused) {
    const Case& golden = cases().at(GetParam());
    const Patch patch = patch_of(golden);
    const Weights base = base_weights();
    if (golden.entry.at("refused").get<bool>()) {
        EXPECT_THROW(apply_patch(&base, patch, base.size()), PatchMismatch);
        return;
    }
    const SharedWeights result = apply_patch(&base, patch, base.size());
    // By their bits: a NaN is not equal to itself.
    const std::string& expected = golden.arrays.at("result").bytes;
    ASSERT_EQ(result->size() * sizeof(float), expected.size());
    EXPECT_EQ(std::memcmp(result->data(), expected.data(), expected.size()), 0);
    EXPECT_EQ(sha256(*result), patch.sha256);
}

INSTANTIATE_TEST_SUITE_P(Golden, EveryPatch, ::testing::ValuesIn(golden::case_names("patches")),
                         [](const auto& parameter) { return parameter.param; });

TEST(Patches, FullCopiesNeedNoBaseAndOthersDo) {
    EXPECT_NO_THROW(apply_patch(nullptr, patch_of(cases().at("raw")), 3000));
    EXPECT_NO_THROW(apply_patch(nullptr, patch_of(cases().at("planes")), 3000));
    EXPECT_THROW(apply_patch(nullptr, patch_of(cases().at("xor")), 3000), PatchMismatch);
    const Weights shorter(2999);
    EXPECT_THROW(apply_patch(&shorter, patch_of(cases().at("xor")), 3000), PatchMismatch);
}

TEST(Patches, ARefusalSaysWhatToDo) {
    try {
        apply_patch(nullptr, patch_of(cases().at("xor")), 3000);
        FAIL() << "the patch was accepted";
    } catch (const PatchMismatch& error) {
        EXPECT_STREQ(error.what(),
                     "Cannot make version 7 from version 6: it needs a base, and there is none. Keep acting with the "
                     "present weights and pull in full.");
    }
}

TEST(Patches, AnUnknownEncodingIsRefused) {
    Patch patch = patch_of(cases().at("raw"));
    for (const int number : {0, 4, 255}) {
        patch.encoding = static_cast<Encoding>(number);
        EXPECT_THROW(apply_patch(nullptr, patch, 3000), PatchMismatch);
    }
}

TEST(Patches, APatchOfNoWeightsIsValid) {
    Patch patch;
    patch.sha256 = sha256(Weights{});
    EXPECT_TRUE(apply_patch(nullptr, patch, 0)->empty());
}

TEST(Patches, DamageAnywhereIsDetected) {
    for (const char* name : {"planes", "xor"}) {
        const Patch whole = patch_of(cases().at(name));
        const Weights base = base_weights();
        for (std::size_t at = 0; at < whole.payload.size(); at += 1 + whole.payload.size() / 200) {
            Patch damaged = whole;
            damaged.payload[at] = static_cast<char>(damaged.payload[at] ^ 0x55);
            SharedWeights result;
            try {
                result = apply_patch(&base, damaged, base.size());
            } catch (const PatchMismatch&) {
                continue;
            }
            // Some bits of a frame mean nothing; then the result is the right one.
            EXPECT_EQ(sha256(*result), whole.sha256) << name << " " << at;
        }
    }
}

}  // namespace
}  // namespace rl4sys
