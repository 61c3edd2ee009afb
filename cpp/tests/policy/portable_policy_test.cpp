#include "rl4sys/portable_policy.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

namespace rl4sys {
namespace {

/// A file that Python wrote: two numbers are the scores of two choices, the first with half a point more.
std::string small_file() {
    std::ifstream file(std::string(RL4SYS_ROOT) + "/cpp/tests/policy/small.rl4sys", std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// What reading these bytes says.
std::string refusal(const std::string& data) {
    try {
        PortablePolicy::from_bytes(data, "a.rl4sys");
        return "accepted";
    } catch (const PolicyFileDamaged& error) {
        return error.what();
    }
}

bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

TEST(PortablePolicies, AFileFromPythonIsReadAndDecides) {
    const PortablePolicy file = PortablePolicy::read(std::string(RL4SYS_ROOT) + "/cpp/tests/policy/small.rl4sys");
    EXPECT_EQ(file.version, 7);
    EXPECT_EQ(file.steps, 4096);
    EXPECT_EQ(*file.weights, (Weights{2, 0, 0, 2, 0.5F, 0}));
    EXPECT_EQ(file.explore.head.kind, HeadKind::Categorical);
    Policy policy(file.exploit, file.weights);
    const float states[] = {0.0F, 1.0F, 1.0F, 1.0F};
    const void* observation[] = {states};
    const Decisions decisions = policy.decide_rows(2, observation, nullptr);
    EXPECT_EQ(decisions.choices[0], 1);
    EXPECT_EQ(decisions.choices[1], 0);
}

TEST(PortablePolicies, AnyChangedByteIsDetected) {
    const std::string whole = small_file();
    for (std::size_t at = 0; at < whole.size(); ++at) {
        std::string changed = whole;
        changed[at] = static_cast<char>(changed[at] ^ 1);
        EXPECT_NE(refusal(changed), "accepted") << "byte " << at;
    }
}

TEST(PortablePolicies, AnyMissingByteIsDetected) {
    const std::string whole = small_file();
    for (std::size_t size = 0; size < whole.size(); ++size) {
        EXPECT_NE(refusal(whole.substr(0, size)), "accepted") << size << " bytes";
    }
}

TEST(PortablePolicies, TheErrorSaysWhatIsWrongAndHowToWriteTheFile) {
    EXPECT_TRUE(has(refusal("nonsense\n"), "a.rl4sys is not a valid policy file: it does not begin with"))
        << refusal("nonsense\n");
    EXPECT_TRUE(has(refusal(small_file() + "more"), "its SHA-256 does not match"));
    EXPECT_TRUE(has(refusal(""), "rl4sys policy export RUN --output a.rl4sys"));
    EXPECT_THROW(PortablePolicy::read("/nowhere/a.rl4sys"), PolicyFileDamaged);
}

/// A file with this description, sealed as Python seals it.
std::string sealed(const std::string& about, const std::string& weights) {
    const std::string hashed = about + "\n" + weights;
    const std::string sha256 = to_hex(rl4sys::sha256(hashed.data(), hashed.size()));
    return "{\"policy\":" + about + ",\"sha256\":\"" + sha256 + "\"}\n" + weights;
}

TEST(PortablePolicies, SealedNonsenseIsRefusedToo) {
    EXPECT_TRUE(has(refusal(sealed("{\"format\":2}", "")), "its format is 2, and this version reads 1"));
    EXPECT_TRUE(has(refusal(sealed("{}", "")), "it does not begin with the description of one"));
    EXPECT_TRUE(has(refusal(sealed(std::string(100'000, '['), "")), "nested too deeply"));
    const std::string whole = small_file();
    const std::size_t begin = std::string("{\"policy\":").size();
    const std::string about = whole.substr(begin, whole.find(",\"sha256\":") - begin);
    EXPECT_TRUE(has(refusal(sealed(about, std::string(20, '\0'))), "it has 5 weights, and its program takes 6"));
    EXPECT_TRUE(has(refusal(sealed(about, std::string(23, '\0'))), "its last weight is incomplete"));
}

}  // namespace
}  // namespace rl4sys
