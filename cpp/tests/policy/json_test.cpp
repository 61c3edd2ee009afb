#include <gtest/gtest.h>

#include "programs.hpp"

namespace rl4sys {
namespace {

std::string refusal(const std::string& text) {
    try {
        policy_from_json(text);
    } catch (const BadPolicy& error) {
        return error.what();
    }
    return "";
}

TEST(PolicyJson, SettingsOfEveryKindRoundTrip) {
    PolicySpec spec = dense_policy(2, {3}, 2);
    spec.head.settings = {{"real", 0.1},
                          {"whole", std::int64_t{-3}},
                          {"text", std::string("tanh")},
                          {"truth", true},
                          {"wholes", std::vector<std::int64_t>{1, 2}},
                          {"reals", std::vector<double>{0.5, 2.0}}};
    const PolicySpec back = policy_from_json(policy_to_json(spec));
    EXPECT_EQ(back.head.settings, spec.head.settings);
    EXPECT_EQ(policy_to_json(back), policy_to_json(spec));
}

TEST(PolicyJson, OneAndOnePointZeroHaveTheSameText) {
    PolicySpec whole = dense_policy(2, {3}, 2), real = whole;
    whole.head.settings["clip"] = std::int64_t{10};
    real.head.settings["clip"] = 10.0;
    EXPECT_EQ(policy_to_json(whole), policy_to_json(real));
}

TEST(PolicyJson, ChanceAndModelAreWrittenOnlyWhereTheyExist) {
    PolicySpec spec = dense_policy(2, {3}, 2);
    EXPECT_EQ(policy_to_json(spec).find("chance"), std::string::npos);
    EXPECT_EQ(policy_to_json(spec).find("model"), std::string::npos);
    spec.program.chance = {{"z", 2, Distribution::Normal}, {"u", 3, Distribution::Uniform}};
    spec.head.kind = HeadKind::Planned;
    spec.model = spec.program;
    const PolicySpec back = policy_from_json(policy_to_json(spec));
    EXPECT_EQ(back.program.chance[1].name, "u");
    EXPECT_EQ(back.program.uniform_numbers(), 2U * 2U + 3U);
    EXPECT_EQ(back.model->chance.size(), 2U);
    EXPECT_EQ(policy_to_json(back), policy_to_json(spec));
}

TEST(PolicyJson, InvalidTextIsRefused) {
    const std::string good = policy_to_json(dense_policy(2, {3}, 2));
    EXPECT_EQ(refusal(good), "");
    for (const std::string text : {"", "{", "[]", "null", "3", "{}", "\xff", R"({"action":{}})"}) {
        EXPECT_NE(refusal(text), "") << text;
    }
    for (std::size_t cut = 0; cut < good.size(); cut += 7) EXPECT_NE(refusal(good.substr(0, cut)), "") << cut;
}

TEST(PolicyJson, DeepNestingIsRefusedBeforeItExhaustsTheStack) {
    EXPECT_NE(refusal(std::string(1000000, '[')), "");
    EXPECT_NE(refusal(R"({"action":)" + std::string(100000, '[') + std::string(100000, ']') + "}"), "");
}

TEST(PolicyJson, ErrorsNameWhatIsWrong) {
    std::string text = policy_to_json(dense_policy(2, {3}, 2));
    const auto replaced = [&](const std::string& old, const std::string& fresh) {
        std::string copy = text;
        return copy.replace(copy.find(old), old.size(), fresh);
    };
    EXPECT_NE(refusal(replaced("\"categorical\"", "\"oracle\"")).find("oracle"), std::string::npos);
    EXPECT_NE(refusal(replaced("\"float32\"", "\"float8\"")).find("float8"), std::string::npos);
    EXPECT_NE(refusal(replaced("[2,3]", "[-2,3]")).find("-2"), std::string::npos);
    EXPECT_NE(refusal(replaced("[2,3]", "[99999999999,3]")).find("99999999999"), std::string::npos);
    EXPECT_NE(refusal(replaced("\"discrete\"", "\"discreet\"")).find("discreet"), std::string::npos);
    const std::string chance = "\"carry\":[],\"chance\":[{\"name\":\"z\",\"size\":1,\"distribution\":\"cauchy\"}]";
    EXPECT_NE(refusal(replaced("\"carry\":[]", chance)).find("cauchy"), std::string::npos);
}

}  // namespace
}  // namespace rl4sys
