#include <cmath>

#include "policy/heads.hpp"

namespace rl4sys::detail {
namespace {

/// What networks see of a number is (a - middle) / divisor, within the limit.
struct Scaling {
    float middle = 0.0F, divisor = 1.0F, limit = INFINITY;

    float operator()(float value) const {
        const float scaled = (value - middle) / divisor;
        const float above = scaled < -limit ? -limit : scaled;
        return above > limit ? limit : above;
    }
};

/// Numbers without finite bounds stay as they are; a number whose bounds are equal is always 0.
std::vector<Scaling> scalings(const std::vector<double>& low, const std::vector<double>& high) {
    std::vector<Scaling> all;
    for (std::size_t i = 0; i < low.size(); ++i) {
        const auto bottom = static_cast<float>(low[i]), top = static_cast<float>(high[i]);
        const float scale = (top - bottom) / 2.0F;
        Scaling scaling;
        if (std::isfinite(scale)) {
            scaling = {(top + bottom) / 2.0F, scale > 0.0F ? scale : 1.0F, scale > 0.0F ? 1.0F : 0.0F};
        }
        all.push_back(scaling);
    }
    return all;
}

/// The parts of an action: the number of choices in each group, then the numbers.
struct EncodedAction {
    std::vector<std::size_t> groups;
    std::vector<Scaling> numbers;
    /// Whether the choices are the first of the answer's numbers.
    bool is_mixed = false;

    std::size_t size() const {
        std::size_t total = numbers.size();
        for (const std::size_t group : groups) {
            if (group > most_register_values || total > most_register_values) break;
            total += group;
        }
        return total;
    }

    void write(const Answer& answer, float* to) const {
        for (std::size_t group = 0; group < groups.size(); ++group) {
            for (std::size_t i = 0; i < groups[group]; ++i) to[i] = 0.0F;
            to[is_mixed ? static_cast<std::size_t>(answer.numbers[group])
                        : static_cast<std::size_t>(answer.choices[group])] = 1.0F;
            to += groups[group];
        }
        const float* from = answer.numbers + (is_mixed ? groups.size() : 0);
        for (std::size_t i = 0; i < numbers.size(); ++i) to[i] = numbers[i](from[i]);
    }
};

EncodedAction encoding_of(const ActionSpec& action) {
    EncodedAction encoding;
    encoding.groups = groups_of(action);
    if (const auto* box = std::get_if<BoxAction>(&action)) encoding.numbers = scalings(box->low, box->high);
    if (const auto* mixed = std::get_if<MixedAction>(&action)) {
        encoding.numbers = scalings(mixed->low, mixed->high);
        encoding.is_mixed = true;
    }
    return encoding;
}

}  // namespace

Decide remember_action(Compiler& compiler, Decide decide) {
    const std::optional<std::string> name = compiler.spec().head.action_register();
    if (!name) return decide;
    EncodedAction encoding = encoding_of(compiler.spec().action);
    const std::size_t size = encoding.size();
    if (size > most_register_values) refuse(head_label, "writes an action of too many choices into memory");
    const std::size_t at = compiler.assign(*name, {static_cast<std::uint32_t>(size)}).at;
    return [decide = std::move(decide), encoding = std::move(encoding), at](const DecisionFrame& f, const float* noise,
                                                                            Answer& answer) {
        const Outcome outcome = decide(f, noise, answer);
        if (outcome == Outcome::Decided) encoding.write(answer, f.registers + at);
        return outcome;
    };
}

}  // namespace rl4sys::detail
