#include "policy/plan.hpp"

#include <cmath>
#include <cstring>
#include <utility>

#include "policy/elements.hpp"
#include "policy/ops.hpp"

namespace rl4sys::detail {
namespace {

void require_bounded(const char* what, std::size_t count) {
    if (count > most_parts) {
        refuse("it", "has " + std::to_string(count) + " " + what + "; at most " + std::to_string(most_parts) +
                         " are allowed");
    }
}

void require_known_head(HeadKind kind) {
    if (kind != HeadKind::Planned) return;
    throw UnknownOp("This runtime lacks the head '" + std::string(head_name(kind)) + "'; decide on the server.");
}

void require_known_ops(const Program& program) {
    std::string unknown;
    for (const Op& op : program.ops) {
        if (!knows_op(op.kind)) unknown += (unknown.empty() ? "'" : ", '") + op.kind.substr(0, 64) + "'";
        if (unknown.size() > 1024) break;
    }
    if (!unknown.empty()) {
        throw UnknownOp("This runtime lacks the ops " + unknown + "; upgrade rl4sys, or decide on the server.");
    }
}

std::size_t checked_size(const DiscreteAction& action) {
    if (action.n < 1) refuse("its action", "has " + std::to_string(action.n) + " choices; expected at least one");
    return 1;
}

std::size_t checked_size(const MultiDiscreteAction& action) {
    require_bounded("parts of an action", action.sizes.size());
    if (action.sizes.empty()) refuse("its action", "has no parts; expected at least one");
    for (const std::int64_t size : action.sizes) checked_size(DiscreteAction{size});
    return action.sizes.size();
}

std::size_t checked_size(const BoxAction& action) {
    require_bounded("bounds", action.low.size());
    bool right = !action.low.empty() && action.low.size() == action.high.size();
    // NaN fails every comparison, so this refuses it too.
    for (std::size_t i = 0; right && i < action.low.size(); ++i) right = action.low[i] <= action.high[i];
    if (!right) {
        refuse("its action", "has " + std::to_string(action.low.size()) + " lower and " +
                                 std::to_string(action.high.size()) +
                                 " upper bounds; expected as many of both, at least one, and no lower bound above its "
                                 "upper one");
    }
    return action.low.size();
}

std::size_t checked_size(const MixedAction& action) {
    for (const std::int64_t size : action.sizes) {
        // A float32 holds whole numbers up to here exactly.
        if (size > (1 << 24)) refuse("its action", "has " + std::to_string(size) + " choices; expected at most 2^24");
    }
    return checked_size(MultiDiscreteAction{action.sizes}) + checked_size(BoxAction{action.low, action.high});
}

Layout checked_layout(const Program& program) {
    require_bounded("inputs", program.inputs.size());
    require_bounded("ops", program.ops.size());
    require_bounded("tensors", program.tensors.size());
    require_bounded("memories", program.carry.size());
    require_bounded("chance registers", program.chance.size());
    try {
        return Layout(program.tensors);
    } catch (const std::invalid_argument& error) {
        throw BadPolicy(std::string("The policy cannot be run: ") + error.what());
    }
}

}  // namespace

Plan::Plan(PolicySpec spec, SharedWeights weights, const Kernels& kernels)
    : spec_(std::move(spec)), layout_(checked_layout(spec_.program)), kernels_(kernels) {
    require_known_ops(spec_.program);
    require_known_head(spec_.head.kind);
    try {
        compile();
    } catch (const BadPolicy&) {
        throw;
    } catch (const std::invalid_argument& error) {
        throw BadPolicy(std::string("The policy cannot be run: ") + error.what());
    }
    load(std::move(weights));
}

void Plan::compile() {
    action_size_ = std::visit([](const auto& action) { return checked_size(action); }, spec_.action);
    Compiler compiler(spec_, layout_);
    chance_ = compile_chance(compiler);
    drawn_ = spec_.program.uniform_numbers();
    for (std::size_t index = 0; index < spec_.program.ops.size(); ++index) {
        const Op& op = spec_.program.ops[index];
        Step step = compile_op(compiler, op, "op " + std::to_string(index) + " '" + op.kind + "'");
        if (step) steps_.push_back(std::move(step));
    }
    // Before the carry: the head may assign a register that the carry reads.
    head_ = remember_action(compiler, compile_head(compiler));
    std::size_t carry = 0;
    for (const Memory& memory : spec_.program.carry) {
        const std::string who = "the memory '" + memory.name + "'";
        const Register before = compiler.find(memory.name, who), after = compiler.floats(memory.next, who);
        if (before.shape != after.shape) {
            refuse(who, "has shape " + to_string(before.shape) + " but takes the value of '" + memory.next +
                            "' of shape " + to_string(after.shape));
        }
        if (before.values > 0) memories_.push_back({before.values, before.at, after.at});
        carry += before.values;
    }
    if (carry > most_carry_values) {
        refuse("its memory", "takes " + std::to_string(carry * sizeof(float)) + " bytes; at most " +
                                 std::to_string(most_carry_values * sizeof(float)) +
                                 " can be carried; choose a shorter window or smaller layers");
    }
    for (std::size_t index = 0; index < spec_.program.inputs.size(); ++index) {
        if (!compiler.read_as_floats()[index]) continue;
        const ArraySpec& input = spec_.program.inputs[index];
        conversions_.push_back({index, input.values(), compiler.find(input.name, "it").at, input.type});
    }
    // Whole cache lines, and at least one, so that there is a valid address even without registers.
    register_values_ = compiler.register_values() + cache_line;
    registers_ = Registers(register_values_);
    next_carry_.resize(carry);
    if (std::holds_alternative<BoxAction>(spec_.action) || std::holds_alternative<MixedAction>(spec_.action)) {
        numbers_.resize(action_size_);
    } else {
        choices_.resize(action_size_);
    }
}

void Plan::load(SharedWeights weights) {
    if (weights == nullptr || weights->size() != layout_.size()) {
        throw LayoutMismatch("The policy has " + std::to_string(layout_.size()) + " weights; got " +
                             (weights == nullptr ? "none" : std::to_string(weights->size())) +
                             ". The weights belong to another architecture.");
    }
    weights_ = std::move(weights);
}

void Plan::begin(DecisionFrame& frame, const float* noise, const float* carry) const noexcept {
    for (const Conversion& conversion : conversions_) {
        const void* from = frame.observation[conversion.input];
        float* to = frame.registers + conversion.at;
        if (conversion.type == ElementType::UInt8) {
            kernels_.from_bytes(static_cast<const unsigned char*>(from), to, conversion.values);
        } else {
            to_floats(from, conversion.type, to, conversion.values);
        }
    }
    for (const Recall& memory : memories_) {
        if (carry == nullptr) {
            std::memset(frame.registers + memory.at, 0, memory.values * sizeof(float));
        } else {
            std::memcpy(frame.registers + memory.at, carry, memory.values * sizeof(float));
            carry += memory.values;
        }
    }
    for (const FillNoise& fill : chance_) fill(frame.registers, noise);
}

Outcome Plan::conclude(const DecisionFrame& frame, const float* noise, Answer& answer, float* carry) const noexcept {
    // Without any noise there may be no address to add to.
    const Outcome decided = head_(frame, drawn_ == 0 ? noise : noise + drawn_, answer);
    const Outcome outcome = frame.outcome == Outcome::Decided ? decided : frame.outcome;
    if (outcome != Outcome::Decided) return outcome;
    for (const Recall& memory : memories_) {
        std::memcpy(carry, frame.registers + memory.next, memory.values * sizeof(float));
        carry += memory.values;
    }
    return outcome;
}

Decision Plan::decide(const void* const* observation, const float* noise, const float* carry) noexcept {
    DecisionFrame frame{&kernels_, first_weight(), observation, registers_.data(), Outcome::Decided};
    begin(frame, noise, carry);
    for (const Step& step : steps_) step(frame);
    Answer answer{choices_.data(), numbers_.data(), 0.0F};
    Decision decision;
    decision.outcome = conclude(frame, noise, answer, next_carry_.data());
    if (decision.outcome != Outcome::Decided) return decision;
    decision.choices = choices_.empty() ? nullptr : choices_.data();
    decision.numbers = numbers_.empty() ? nullptr : numbers_.data();
    decision.log_prob = answer.log_prob;
    decision.carry = memories_.empty() ? nullptr : next_carry_.data();
    return decision;
}

const float* Plan::first_weight() const noexcept {
    static constexpr float nothing = 0.0F;
    return weights_->empty() ? &nothing : weights_->data();
}

}  // namespace rl4sys::detail
