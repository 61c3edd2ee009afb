#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "golden.hpp"
#include "programs.hpp"

namespace rl4sys {
namespace {

/// The error for a modified spec; empty if it was accepted.
std::string refusal(const std::function<void(PolicySpec&)>& spoil, PolicySpec spec = dense_policy(4, {8}, 3)) {
    spoil(spec);
    SharedWeights weights = std::make_shared<const Weights>();
    try {
        weights = wavy_weights(spec);
    } catch (const std::invalid_argument&) {
        // Then no weights fit, and the policy must report why.
    }
    try {
        Policy policy(spec, weights);
    } catch (const BadPolicy& error) {
        return error.what();
    }
    return "";
}

void expect_refusal(const std::string& part, const std::function<void(PolicySpec&)>& spoil,
                    const PolicySpec& spec = dense_policy(4, {8}, 3)) {
    const std::string found = refusal(spoil, spec);
    EXPECT_NE(found.find(part), std::string::npos) << "expected '" << part << "' in '" << found << "'";
}

PolicySpec box_policy(HeadKind kind) {
    PolicySpec spec = dense_policy(4, {8}, 3);
    spec.action = BoxAction{{-1, -1, -1}, {1, 1, 1}};
    spec.head.kind = kind;
    return spec;
}

TEST(Malformed, AValidPolicyIsAccepted) {
    EXPECT_EQ(refusal([](PolicySpec&) {}), "");
    EXPECT_EQ(refusal([](PolicySpec&) {}, box_policy(HeadKind::Deterministic)), "");
}

TEST(Malformed, UnknownOpsAreNamed) {
    PolicySpec spec = dense_policy(4, {8}, 3);
    spec.program.ops[1].kind = "dream";
    try {
        Policy policy(spec, wavy_weights(spec));
        FAIL() << "the op was accepted";
    } catch (const UnknownOp& error) {
        EXPECT_NE(std::string(error.what()).find("'dream'"), std::string::npos);
    }
}

TEST(Malformed, NamesMustExist) {
    expect_refusal("'nowhere'", [](PolicySpec& s) { s.program.ops[0].inputs[0] = "nowhere"; });
    expect_refusal("'nowhere'", [](PolicySpec& s) { s.program.ops[0].tensors[0] = "nowhere"; });
    expect_refusal("'nowhere'", [](PolicySpec& s) { s.head.inputs[0] = "nowhere"; });
    expect_refusal("'nowhere'", [](PolicySpec& s) { s.head.mask = "nowhere"; });
    expect_refusal("'nowhere'", [](PolicySpec& s) { s.program.carry = {{"memory", {4}, "nowhere"}}; });
}

TEST(Malformed, CyclesAreRefused) {
    expect_refusal("does not exist by then", [](PolicySpec& s) { s.program.ops[0].inputs[0] = "layer0"; });
    expect_refusal("does not exist by then", [](PolicySpec& s) { s.program.ops[0].inputs[0] = "layer1"; });
    expect_refusal("does not exist by then", [](PolicySpec& s) { std::swap(s.program.ops[0], s.program.ops[1]); });
}

TEST(Malformed, RegistersAndTensorsHaveOneNameEach) {
    expect_refusal("assigned twice", [](PolicySpec& s) { s.program.ops[2].outputs[0] = "layer0"; });
    expect_refusal("assigned twice", [](PolicySpec& s) { s.program.ops[0].outputs[0] = "x"; });
    expect_refusal("has no name", [](PolicySpec& s) { s.program.ops[2].outputs[0] = ""; });
    expect_refusal("twice", [](PolicySpec& s) { s.program.tensors[1].name = s.program.tensors[0].name; });
    expect_refusal("assigned twice", [](PolicySpec& s) { s.program.inputs.push_back(s.program.inputs[0]); });
    expect_refusal("assigned twice", [](PolicySpec& s) { s.program.carry = {{"x", {4}, "x"}}; });
}

TEST(Malformed, ShapesMustFit) {
    expect_refusal("[5, 8]", [](PolicySpec& s) { s.program.tensors[0].shape = {5, 8}; });
    expect_refusal("[7]", [](PolicySpec& s) { s.program.tensors[1].shape = {7}; });
    expect_refusal("2 axes", [](PolicySpec& s) { s.program.tensors[0].shape = {32}; });
    expect_refusal("1 axis", [](PolicySpec& s) { s.program.inputs[0].shape = {2, 2}; });
    expect_refusal("[4]", [](PolicySpec& s) { s.action = DiscreteAction{4, 0}; });
    expect_refusal("[2]", [](PolicySpec& s) { s.program.carry = {{"memory", {2}, "layer0"}}; });
    expect_refusal("3 axes", [](PolicySpec& s) { s.program.ops.push_back({"channels_first", {"t"}, {"x"}, {}, {}}); });
    expect_refusal("equal", [](PolicySpec& s) { s.program.ops.push_back({"add", {"sum"}, {"x", "layer0"}, {}, {}}); });
}

TEST(Malformed, GiantSizesAreRefusedBeforeAnythingIsAllocated) {
    const std::uint32_t giant = 0xFFFFFFFF;
    expect_refusal("values", [=](PolicySpec& s) { s.program.inputs[0].shape = {giant, giant, giant, giant}; });
    expect_refusal("axes", [](PolicySpec& s) { s.program.inputs[0].shape = Shape(9, 1); });
    expect_refusal("values", [](PolicySpec& s) { s.program.inputs[0].shape = {1U << 31}; });
    expect_refusal("values", [=](PolicySpec& s) { s.program.tensors.push_back({"spare", {giant, giant}}); });
    expect_refusal("ops", [](PolicySpec& s) { s.program.ops.resize(70000, s.program.ops[1]); });
    expect_refusal("choices", [](PolicySpec& s) { s.action = DiscreteAction{std::int64_t{1} << 62, 0}; });
    expect_refusal("padding", [](PolicySpec& s) {
        s.program.inputs.push_back({"image", ElementType::Float32, {1, 4, 4}});
        s.program.tensors.push_back({"kernel", {1, 1, 2, 2}});
        s.program.tensors.push_back({"bias", {1}});
        s.program.ops.push_back({"conv2d", {"c"}, {"image"}, {"kernel", "bias"}, {{"stride", 1.0}, {"padding", 1e18}}});
    });
    expect_refusal("values at once", [](PolicySpec& s) {
        s.program.inputs.push_back({"image", ElementType::Float32, {1, 4, 4}});
        s.program.tensors.push_back({"kernel", {1, 1, 2, 2}});
        s.program.tensors.push_back({"bias", {1}});
        s.program.ops.push_back(
            {"conv2d", {"c"}, {"image"}, {"kernel", "bias"}, {{"stride", 1.0}, {"padding", std::int64_t{20000}}}});
    });
}

TEST(Malformed, WindowsPartsAndShapesMustFit) {
    const auto over = [](const std::string& kind, Settings settings) {
        return [kind, settings](PolicySpec& s) {
            s.program.inputs.push_back({"sequence", ElementType::Float32, {2, 5}});
            s.program.ops.push_back({kind, {"result"}, {"sequence"}, {}, settings});
        };
    };
    const auto whole = [](std::int64_t value) { return Setting(value); };
    const Settings pool{{"kernel", whole(2)}, {"stride", whole(2)}, {"padding", whole(1)}};
    EXPECT_EQ(refusal(over("max_pool1d", pool)), "");
    expect_refusal("2 more axes", over("max_pool2d", pool));
    expect_refusal("do not fit",
                   over("average_pool1d", {{"kernel", whole(6)}, {"stride", whole(1)}, {"padding", whole(0)}}));
    expect_refusal("half of its kernel",
                   over("max_pool1d", {{"kernel", whole(2)}, {"stride", whole(1)}, {"padding", whole(2)}}));
    expect_refusal("of axis 1", over("slice", {{"axis", whole(1)}, {"start", whole(4)}, {"stop", whole(6)}}));
    expect_refusal("of axis 2", over("slice", {{"axis", whole(2)}, {"start", whole(0)}, {"stop", whole(1)}}));
    expect_refusal("'lengths'", over("reshape", {}));
    expect_refusal("as many values", over("reshape", {{"lengths", std::vector<std::int64_t>{3, 3}}}));
    expect_refusal("length -1", over("reshape", {{"lengths", std::vector<std::int64_t>{-1, 10}}}));
}

TEST(Malformed, SettingsMustBePresentAndFinite) {
    const auto with = [](Settings settings) {
        return [settings](PolicySpec& s) {
            s.program.ops[1] = {"leaky_relu", {"layer0.tanh"}, {"layer0"}, {}, settings};
        };
    };
    EXPECT_EQ(refusal(with({{"slope", 0.01}})), "");
    expect_refusal("'slope'", with({}));
    expect_refusal("'slope'", with({{"slope", std::string("steep")}}));
    expect_refusal("'slope'", with({{"slope", double{NAN}}}));
}

TEST(Malformed, ActionsMustFitTheirHead) {
    expect_refusal("cannot produce", [](PolicySpec& s) { s.head.kind = HeadKind::Gaussian; });
    expect_refusal("unknown", [](PolicySpec& s) { s.head.kind = static_cast<HeadKind>(99); });
    expect_refusal("choices", [](PolicySpec& s) { s.action = DiscreteAction{0, 0}; });
    expect_refusal("choices", [](PolicySpec& s) { s.action = MultiDiscreteAction{{3, -1}}; });
    expect_refusal("parts", [](PolicySpec& s) { s.action = MultiDiscreteAction{}; });
    const PolicySpec box = box_policy(HeadKind::Deterministic);
    expect_refusal(
        "bounds",
        [](PolicySpec& s) {
            s.action = BoxAction{{-1, -1, NAN}, {1, 1, 1}};
        },
        box);
    expect_refusal(
        "bounds",
        [](PolicySpec& s) {
            s.action = BoxAction{{-1, -1}, {1, 1, 1}};
        },
        box);
    expect_refusal(
        "bounds",
        [](PolicySpec& s) {
            s.action = BoxAction{{2, 0, 0}, {1, 1, 1}};
        },
        box);
    expect_refusal(
        "finite bounds",
        [](PolicySpec& s) {
            s.action = BoxAction{{-INFINITY, 0, 0}, {1, 1, 1}};
            s.head.settings["squash"] = std::string("tanh");
        },
        box);
    expect_refusal(
        "cannot produce", [](PolicySpec& s) { s.head.kind = HeadKind::Categorical; }, box);
    expect_refusal(
        "mask", [](PolicySpec& s) { s.head.mask = "x"; }, box);
}

TEST(Malformed, CorrelatedNoiseNeedsAllItsParts) {
    PolicySpec whole = box_policy(HeadKind::Perturbed);
    whole.program.tensors.push_back({"std", {3}});
    whole.program.tensors.push_back({"epsilon", {1}});
    whole.program.carry = {{"noise", {3}, "noise.next"}};
    whole.head.inputs.emplace_back("noise");
    whole.head.tensors = {"std", "epsilon"};
    whole.head.settings = {{"theta", 0.15}, {"next", std::string("noise.next")}};
    EXPECT_EQ(refusal([](PolicySpec&) {}, whole), "");
    expect_refusal(
        "neither", [](PolicySpec& s) { s.head.inputs.pop_back(); }, whole);
    expect_refusal(
        "neither", [](PolicySpec& s) { s.head.settings.erase("next"); }, whole);
    expect_refusal(
        "theta", [](PolicySpec& s) { s.head.settings.erase("theta"); }, whole);
    expect_refusal(
        "tensors", [](PolicySpec& s) { s.head.tensors.pop_back(); }, whole);
    expect_refusal(
        "'elsewhere'", [](PolicySpec& s) { s.program.carry[0].next = "elsewhere"; }, whole);
    expect_refusal(
        "assigned twice", [](PolicySpec& s) { s.head.settings["next"] = std::string("x"); }, whole);
    expect_refusal(
        "[4]", [](PolicySpec& s) { s.program.tensors[4].shape = {4}; }, whole);
}

TEST(Malformed, NoiseBeforeAProgramNeedsARegisterASizeAndADeviation) {
    PolicySpec whole = box_policy(HeadKind::NoiseConditioned);
    whole.program.tensors.push_back({"epsilon", {1}});
    whole.head.tensors = {"epsilon"};
    whole.head.settings = {{"noise", std::string("chance")}, {"size", std::int64_t{2}}, {"std", 1.0}};
    EXPECT_EQ(refusal([](PolicySpec&) {}, whole), "");
    EXPECT_EQ(noise_size(whole), 2 * 2 + 3 + 1);
    for (const char* name : {"noise", "size", "std"}) {
        expect_refusal(
            name, [=](PolicySpec& s) { s.head.settings.erase(name); }, whole);
    }
    for (const std::int64_t size : {std::int64_t{-1}, std::int64_t{0}, std::int64_t{4097}, INT64_MAX}) {
        expect_refusal(
            "'size'", [=](PolicySpec& s) { s.head.settings["size"] = size; }, whole);
    }
    expect_refusal(
        "'std' below 0", [](PolicySpec& s) { s.head.settings["std"] = -1.0; }, whole);
    expect_refusal(
        "assigned twice", [](PolicySpec& s) { s.head.settings["noise"] = std::string("x"); }, whole);
    expect_refusal(
        "tensors", [](PolicySpec& s) { s.head.tensors.emplace_back("epsilon"); }, whole);
    whole.head.tensors.clear();
    EXPECT_EQ(refusal([](PolicySpec&) {}, whole), "");
    EXPECT_EQ(noise_size(whole), 2 * 2);
}

TEST(Malformed, ChanceRegistersHaveASizeAndANameOfTheirOwn) {
    const auto with = [](std::string name, std::size_t size) {
        return [=](PolicySpec& s) { s.program.chance = {{"u", 3, Distribution::Uniform}, {name, size}}; };
    };
    EXPECT_EQ(refusal(with("z", 2)), "");
    expect_refusal("has 0 numbers", with("z", 0));
    expect_refusal("has 4096 numbers", with("z", 4096));
    expect_refusal("assigned twice", with("u", 1));
    expect_refusal("assigned twice", with("x", 1));
}

TEST(Malformed, ARememberedActionHasARegisterOfItsSize) {
    const auto with = [](const char* name, std::uint32_t size) {
        return [=](PolicySpec& s) {
            s.head.settings["action"] = std::string("done");
            s.program.carry = {{"previous", {size}, name}};
        };
    };
    EXPECT_EQ(refusal(with("done", 3)), "");
    expect_refusal("shape [4]", with("done", 4));
    expect_refusal("'elsewhere'", with("elsewhere", 3));
}

TEST(Malformed, AMemoryAboveOneMebibyteIsRefused) {
    const auto with = [](std::uint32_t size) {
        return [=](PolicySpec& s) { s.program.carry = {{"held", {size}, "held"}}; };
    };
    EXPECT_EQ(refusal(with(1U << 18)), "");
    expect_refusal("takes 1048580 bytes; at most 1048576 can be carried", with((1U << 18) + 1));
}

TEST(Malformed, APolicyThatPlansIsDecidedOnTheServer) {
    expect_refusal("'planned'; decide on the server", [](PolicySpec& s) { s.head.kind = HeadKind::Planned; });
}

TEST(Malformed, MasksAreBoolsOneForEachChoice) {
    const auto with = [](ElementType type, Shape shape) {
        return [=](PolicySpec& s) {
            s.program.inputs.push_back({"mask", type, shape});
            s.head.mask = "mask";
        };
    };
    EXPECT_EQ(refusal(with(ElementType::Bool, {3})), "");
    expect_refusal("mask", with(ElementType::UInt8, {3}));
    expect_refusal("mask", with(ElementType::Bool, {4}));
    expect_refusal("mask", [](PolicySpec& s) { s.head.mask = "layer1"; });
}

TEST(Malformed, ElementTypesMustExist) {
    expect_refusal("element type", [](PolicySpec& s) { s.program.inputs[0].type = static_cast<ElementType>(0); });
    expect_refusal("'scale'", [](PolicySpec& s) { s.program.inputs[0].type = ElementType::Int64; });
}

TEST(Malformed, EveryGoldenOpIsRefusedWithoutAnyOneOfItsParts) {
    for (const auto& [name, golden] : golden::read_cases("ops")) {
        const PolicySpec whole = policy_from_json(golden.entry.at("spec").dump());
        for (std::size_t op = 0; op < whole.program.ops.size(); ++op) {
            const bool optional = whole.program.ops[op].kind == "linear" || whole.program.ops[op].kind == "concat";
            if (!optional) {
                EXPECT_NE(refusal([=](PolicySpec& s) { s.program.ops[op].inputs.pop_back(); }, whole), "") << name;
            }
            EXPECT_NE(refusal([=](PolicySpec& s) { s.program.ops[op].outputs.clear(); }, whole), "") << name;
            EXPECT_NE(refusal([=](PolicySpec& s) { s.program.ops[op].inputs.clear(); }, whole), "") << name;
            EXPECT_NE(refusal([=](PolicySpec& s) { s.program.ops[op].inputs.emplace_back("x"); }, whole), "") << name;
            EXPECT_NE(refusal([=](PolicySpec& s) { s.program.ops[op].outputs.emplace_back("more"); }, whole), "")
                << name;
            for (const auto& [setting, value] : whole.program.ops[op].settings) {
                EXPECT_NE(refusal([=, key = setting](PolicySpec& s) { s.program.ops[op].settings.erase(key); }, whole),
                          "")
                    << name;
            }
            for (const std::string& tensor : whole.program.ops[op].tensors) {
                EXPECT_NE(refusal(
                              [=](PolicySpec& s) {
                                  for (Tensor& t : s.program.tensors) {
                                      if (t.name == tensor) t.shape.back() += 1;
                                  }
                              },
                              whole),
                          "")
                    << name << " " << tensor;
            }
        }
    }
}

}  // namespace
}  // namespace rl4sys
