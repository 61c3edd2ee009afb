#include "policy/heads.hpp"

#include <cmath>
#include <memory>
#include <numeric>

#include "policy/vector_heads.hpp"

namespace rl4sys::detail {
namespace {

/// Which of the choices are allowed; null allows all.
using Mask = const std::uint8_t*;

bool allowed(Mask mask, std::size_t choice) {
    return mask == nullptr || mask[choice] != 0;
}

/// Inverse-CDF sampling: the first choice whose cumulative weight exceeds u times the total, all in float64.
Outcome draw(const float* logits, Mask mask, std::size_t choices, float u, double* cumulative, std::int64_t& choice,
             float& log_prob) {
    double peak = -INFINITY;
    bool any = false;
    for (std::size_t i = 0; i < choices; ++i) {
        if (!allowed(mask, i)) continue;
        any = true;
        // Not std::max: a NaN must become the peak, and then the total.
        if (!(logits[i] <= peak)) peak = logits[i];
    }
    if (!any) return Outcome::NothingAllowed;
    double total = 0.0;
    for (std::size_t i = 0; i < choices; ++i) {
        if (allowed(mask, i)) total += std::exp(static_cast<double>(logits[i]) - peak);
        cumulative[i] = total;
    }
    if (!std::isfinite(total)) return Outcome::NotFinite;
    const double threshold = total * static_cast<double>(u);
    std::size_t chosen = 0;
    while (chosen + 1 < choices && cumulative[chosen] <= threshold) ++chosen;
    choice = static_cast<std::int64_t>(chosen);
    log_prob += static_cast<float>(static_cast<double>(logits[chosen]) - peak - std::log(total));
    return Outcome::Decided;
}

/// The first of the highest allowed scores.
Outcome best(const float* scores, Mask mask, std::size_t choices, std::int64_t& choice) {
    bool any = false;
    float highest = 0.0F;
    for (std::size_t i = 0; i < choices; ++i) {
        if (!allowed(mask, i)) continue;
        if (!std::isfinite(scores[i])) return Outcome::NotFinite;
        if (any && scores[i] <= highest) continue;
        any = true;
        highest = scores[i];
        choice = static_cast<std::int64_t>(i);
    }
    return any ? Outcome::Decided : Outcome::NothingAllowed;
}

/// The allowed choice at this place, counted from 0.
std::int64_t nth_allowed(Mask mask, std::size_t choices, std::size_t place) {
    std::size_t last = 0;
    for (std::size_t i = 0; i < choices; ++i) {
        if (!allowed(mask, i)) continue;
        last = i;
        if (place-- == 0) break;
    }
    return static_cast<std::int64_t>(last);
}

/// The first register of a head over choices, with its groups and its mask.
struct Choices {
    std::size_t scores;
    std::vector<std::size_t> groups;
    std::optional<std::size_t> mask;
    /// The register that counts candidates, if only so many of the first choices exist.
    std::optional<std::size_t> count;
    std::size_t total = 0;

    /// How many choices there are in a group now.
    std::size_t existing(const DecisionFrame& f, std::size_t group) const {
        return count ? real_rows(f.registers[*count], groups[group]) : groups[group];
    }

    Mask masks(const DecisionFrame& f) const { return mask ? static_cast<Mask>(f.observation[*mask]) : nullptr; }
};

/// The choices, whose scores may be followed by numbers in the same register.
Choices read_choices(Compiler& compiler, std::size_t numbers = 0) {
    const PolicySpec& spec = compiler.spec();
    Choices result;
    result.groups = groups_of(spec.action);
    for (const std::size_t size : result.groups) {
        if (size > most_register_values)
            refuse(head_label, "has " + std::to_string(size) + " choices, which are too many");
        result.total += size;
    }
    result.scores = read_vector(compiler, 0, result.total + numbers).at;
    if (spec.head.mask) {
        const Register& mask = compiler.find(*spec.head.mask, head_label);
        const Shape expected{static_cast<std::uint32_t>(result.total)};
        if (!mask.input || mask.type != ElementType::Bool || mask.shape != expected) {
            refuse(head_label, "has the mask '" + *spec.head.mask + "', which is " +
                                   std::string(element_name(mask.type)) + to_string(mask.shape) +
                                   "; expected an observation of bool" + to_string(expected));
        }
        result.mask = mask.input;
    }
    if (const auto found = spec.head.settings.find("count"); found != spec.head.settings.end()) {
        const auto* name = std::get_if<std::string>(&found->second);
        if (name == nullptr || !std::holds_alternative<DiscreteAction>(spec.action)) {
            refuse(head_label, "counts candidates, which needs the name of a register and one discrete choice");
        }
        const Register& count = compiler.floats(*name, head_label);
        if (count.values != 1) {
            refuse(head_label,
                   "reads '" + *name + "' of shape " + to_string(count.shape) + " as a count; expected [1]");
        }
        result.count = count.at;
    }
    return result;
}

Decide compile_categorical(Compiler& compiler) {
    expect_sizes(compiler.spec(), 1, 0);
    Choices c = read_choices(compiler);
    std::size_t largest = 0;
    for (const std::size_t size : c.groups) largest = std::max(largest, size);
    std::shared_ptr<std::vector<double>> cumulative = std::make_shared<std::vector<double>>(largest);
    return [c = std::move(c), cumulative = std::move(cumulative)](const DecisionFrame& f, const float* noise,
                                                                  Answer& answer) {
        const float* logits = f.registers + c.scores;
        Mask mask = c.masks(f);
        for (std::size_t group = 0; group < c.groups.size(); ++group) {
            const std::size_t size = c.groups[group];
            const Outcome outcome = draw(logits, mask, c.existing(f, group), noise[group], cumulative->data(),
                                         answer.choices[group], answer.log_prob);
            if (outcome != Outcome::Decided) return outcome;
            logits += size;
            if (mask != nullptr) mask += size;
        }
        return Outcome::Decided;
    };
}

Decide compile_greedy(Compiler& compiler) {
    expect_sizes(compiler.spec(), 1, 0);
    return [c = read_choices(compiler)](const DecisionFrame& f, const float*, Answer& answer) {
        const float* scores = f.registers + c.scores;
        Mask mask = c.masks(f);
        for (std::size_t group = 0; group < c.groups.size(); ++group) {
            const Outcome outcome = best(scores, mask, c.existing(f, group), answer.choices[group]);
            if (outcome != Outcome::Decided) return outcome;
            scores += c.groups[group];
            if (mask != nullptr) mask += c.groups[group];
        }
        return Outcome::Decided;
    };
}

Decide compile_epsilon_greedy(Compiler& compiler) {
    expect_sizes(compiler.spec(), 1, 1);
    const std::size_t epsilon = compiler.tensor(compiler.spec().head.tensors[0], {1}, head_label);
    return [c = read_choices(compiler), epsilon](const DecisionFrame& f, const float* noise, Answer& answer) {
        const std::size_t choices = c.existing(f, 0);
        const Mask mask = c.masks(f);
        const Outcome outcome = best(f.registers + c.scores, mask, choices, answer.choices[0]);
        if (outcome != Outcome::Decided || !(noise[0] < f.weights[epsilon])) return outcome;
        std::size_t count = 0;
        for (std::size_t i = 0; i < choices; ++i) count += allowed(mask, i) ? 1 : 0;
        // In float64 the product is exact, so its whole part is the same in every language.
        const auto place = static_cast<std::size_t>(static_cast<double>(noise[1]) * static_cast<double>(count));
        answer.choices[0] = nth_allowed(mask, choices, place);
        return Outcome::Decided;
    };
}

/// Choices and numbers side by side: sampled, or the best ones. The choices are the first of the answer's numbers.
Decide compile_mixed(Compiler& compiler, const MixedAction& mixed) {
    const bool samples = compiler.spec().head.kind == HeadKind::Mixed;
    expect_sizes(compiler.spec(), 1, samples ? 1 : 0);
    const std::size_t size = mixed.low.size();
    Choices c = read_choices(compiler, size);
    std::size_t largest = 0;
    for (const std::size_t group : c.groups) largest = std::max(largest, group);
    std::shared_ptr<std::vector<double>> cumulative = std::make_shared<std::vector<double>>(largest);
    const std::size_t first = c.scores + c.total;
    Decide vector = unchanged(first, size);
    if (samples) {
        const Shape shape{static_cast<std::uint32_t>(size)};
        vector = gaussian(first, compiler.tensor(compiler.spec().head.tensors[0], shape, head_label), size);
    }
    return
        [=, c = std::move(c), vector = std::move(vector)](const DecisionFrame& f, const float* noise, Answer& answer) {
            const float* scores = f.registers + c.scores;
            Mask mask = c.masks(f);
            const std::size_t parts = c.groups.size();
            for (std::size_t group = 0; group < parts; ++group) {
                const std::size_t choices = c.groups[group];
                std::int64_t choice = 0;
                const Outcome outcome =
                    samples ? draw(scores, mask, choices, noise[group], cumulative->data(), choice, answer.log_prob)
                            : best(scores, mask, choices, choice);
                if (outcome != Outcome::Decided) return outcome;
                answer.numbers[group] = static_cast<float>(choice);
                scores += choices;
                if (mask != nullptr) mask += choices;
            }
            Answer rest{nullptr, answer.numbers + parts, 0.0F};
            const Outcome outcome = vector(f, samples ? noise + parts : nullptr, rest);
            answer.log_prob += rest.log_prob;
            return outcome;
        };
}

std::string described(const PolicySpec& spec) {
    return std::string(head_name(spec.head.kind));
}

}  // namespace

std::vector<std::size_t> groups_of(const ActionSpec& action) {
    std::vector<std::size_t> groups;
    if (const auto* discrete = std::get_if<DiscreteAction>(&action)) {
        groups.push_back(static_cast<std::size_t>(discrete->n));
    } else if (const auto* several = std::get_if<MultiDiscreteAction>(&action)) {
        for (const std::int64_t size : several->sizes) groups.push_back(static_cast<std::size_t>(size));
    } else if (const auto* mixed = std::get_if<MixedAction>(&action)) {
        for (const std::int64_t size : mixed->sizes) groups.push_back(static_cast<std::size_t>(size));
    }
    return groups;
}

void expect_sizes(const PolicySpec& spec, std::size_t inputs, std::size_t tensors) {
    const Head& head = spec.head;
    if (head.inputs.size() == inputs && head.tensors.size() == tensors) return;
    refuse(head_label, described(spec) + " has " + std::to_string(head.inputs.size()) + " inputs and " +
                           std::to_string(head.tensors.size()) + " tensors; expected " + std::to_string(inputs) +
                           " and " + std::to_string(tensors));
}

Register read_vector(Compiler& compiler, std::size_t index, std::size_t values) {
    const std::string& name = compiler.spec().head.inputs[index];
    Register x = compiler.floats(name, head_label);
    if (x.shape.size() != 1 || x.values != values) {
        refuse(head_label, "reads '" + name + "' of shape " + to_string(x.shape) + "; its action needs [" +
                               std::to_string(values) + "]");
    }
    return x;
}

Decide compile_head(Compiler& compiler) {
    const PolicySpec& spec = compiler.spec();
    if (const auto* box = std::get_if<BoxAction>(&spec.action)) {
        if (spec.head.mask) refuse(head_label, "has a mask, but its action has no choices");
        if (Decide decide = compile_vector_head(compiler, *box)) return decide;
    } else if (const auto* mixed = std::get_if<MixedAction>(&spec.action)) {
        switch (spec.head.kind) {
            case HeadKind::Mixed: return compile_mixed(compiler, *mixed);
            case HeadKind::Deterministic: return compile_mixed(compiler, *mixed);
            default: break;
        }
    } else {
        switch (spec.head.kind) {
            case HeadKind::Categorical: return compile_categorical(compiler);
            case HeadKind::Deterministic: return compile_greedy(compiler);
            case HeadKind::EpsilonGreedy:
                if (std::holds_alternative<DiscreteAction>(spec.action)) return compile_epsilon_greedy(compiler);
                break;
            default: break;
        }
    }
    refuse(head_label, "of kind '" + described(spec) + "' cannot produce actions of this kind");
}

}  // namespace rl4sys::detail
