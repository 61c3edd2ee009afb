#include "wire/policies.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace rl4sys::wire {
namespace {

v1::PolicySpec sample() {
    v1::PolicySpec message;
    message.mutable_action()->mutable_discrete()->set_n(3);
    auto* program = message.mutable_program();
    auto* input = program->add_inputs();
    input->set_name("queue");
    input->set_element_type(v1::ELEMENT_TYPE_FLOAT32);
    input->add_shape(2);
    auto* op = program->add_ops();
    op->set_kind("linear");
    op->add_outputs("r0");
    op->add_inputs("queue");
    op->add_tensors("w");
    (*op->mutable_settings())["slope"].set_real(0.5);
    auto* tensor = program->add_tensors();
    tensor->set_name("w");
    tensor->add_shape(2);
    tensor->add_shape(3);
    message.mutable_head()->set_kind(v1::HEAD_KIND_CATEGORICAL);
    message.mutable_head()->add_inputs("r0");
    return message;
}

TEST(Policies, AMessageBecomesASpec) {
    const PolicySpec spec = decode_policy(sample());
    EXPECT_EQ(std::get<DiscreteAction>(spec.action).n, 3);
    EXPECT_EQ(spec.program.inputs[0], (ArraySpec{"queue", ElementType::Float32, {2}}));
    EXPECT_EQ(spec.program.ops[0].kind, "linear");
    EXPECT_EQ(std::get<double>(spec.program.ops[0].settings.at("slope")), 0.5);
    EXPECT_EQ(spec.head.kind, HeadKind::Categorical);
    EXPECT_FALSE(spec.head.mask);
}

TEST(Policies, ChanceAndModelArrive) {
    v1::PolicySpec message = sample();
    auto* chance = message.mutable_program()->add_chance();
    chance->set_name("z");
    chance->set_size(4);
    chance->set_distribution(v1::DISTRIBUTION_UNIFORM);
    EXPECT_FALSE(decode_policy(message).model);
    *message.mutable_model() = message.program();
    message.mutable_head()->set_kind(v1::HEAD_KIND_PLANNED);
    const PolicySpec spec = decode_policy(message);
    EXPECT_EQ(spec.program.chance[0].size, 4U);
    EXPECT_EQ(spec.program.chance[0].distribution, Distribution::Uniform);
    EXPECT_EQ(spec.model->ops[0].kind, "linear");
    EXPECT_EQ(spec.head.kind, HeadKind::Planned);
}

TEST(Policies, InvalidMessagesAreRefused) {
    for (const auto& spoil : std::vector<void (*)(v1::PolicySpec&)>{
             [](v1::PolicySpec& m) { m.clear_action(); },
             [](v1::PolicySpec& m) { m.mutable_action()->mutable_discrete()->set_n(0); },
             [](v1::PolicySpec& m) { m.mutable_action()->mutable_multi_discrete(); },
             [](v1::PolicySpec& m) { m.mutable_action()->mutable_box()->add_low(0); },
             [](v1::PolicySpec& m) {
                 m.mutable_action()->mutable_box()->add_low(std::nan(""));
                 m.mutable_action()->mutable_box()->add_high(1);
             },
             [](v1::PolicySpec& m) { m.mutable_head()->set_kind(v1::HEAD_KIND_UNSPECIFIED); },
             [](v1::PolicySpec& m) { m.mutable_head()->set_kind(static_cast<v1::HeadKind>(77)); },
             [](v1::PolicySpec& m) { m.mutable_program()->add_chance()->set_name("z"); },
             [](v1::PolicySpec& m) { m.mutable_program()->mutable_inputs(0)->set_name(""); },
             [](v1::PolicySpec& m) { *m.mutable_program()->add_inputs() = m.program().inputs(0); },
             [](v1::PolicySpec& m) { m.mutable_program()->mutable_inputs(0)->clear_element_type(); },
             [](v1::PolicySpec& m) { m.mutable_program()->mutable_tensors(0)->add_shape(1U << 31); },
             [](v1::PolicySpec& m) {
                 (*m.mutable_program()->mutable_ops(0)->mutable_settings())["x"].set_real(
                     std::numeric_limits<double>::infinity());
             },
             [](v1::PolicySpec& m) { (*m.mutable_program()->mutable_ops(0)->mutable_settings())["x"]; },
         }) {
        v1::PolicySpec message = sample();
        spoil(message);
        EXPECT_THROW(decode_policy(message), ContractViolation);
    }
}

TEST(Policies, ActionsRoundTrip) {
    const ActionSpec box = BoxAction{{-1, -std::numeric_limits<double>::infinity()}, {1, 2}};
    EXPECT_EQ(std::get<BoxAction>(decode_action(encode_action(box))).high, (std::vector<double>{1, 2}));
    const ActionSpec several = MultiDiscreteAction{{3, 2}};
    EXPECT_EQ(std::get<MultiDiscreteAction>(decode_action(encode_action(several))).sizes,
              (std::vector<std::int64_t>{3, 2}));
    EXPECT_EQ(std::get<DiscreteAction>(decode_action(encode_action(DiscreteAction{4, -2}))).start, -2);
    const ActionSpec mixed = MixedAction{{3, 2}, {-1}, {1}};
    EXPECT_EQ(std::get<MixedAction>(decode_action(encode_action(mixed))).sizes, (std::vector<std::int64_t>{3, 2}));
    EXPECT_EQ(std::get<MixedAction>(decode_action(encode_action(mixed))).low, (std::vector<double>{-1}));
}

}  // namespace
}  // namespace rl4sys::wire
