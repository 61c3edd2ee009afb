#include <cmath>
#include <memory>
#include <numeric>

#include "policy/compiler.hpp"

namespace rl4sys::detail {
namespace {

constexpr float half_log_two_pi = 0.918938533F;
constexpr float log_two = 0.693147181F;

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
        if (std::isnan(scores[i])) return Outcome::NotFinite;
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

/// The choices of an action, group after group.
std::vector<std::size_t> groups_of(const ActionSpec& action) {
    std::vector<std::size_t> groups;
    if (const auto* discrete = std::get_if<DiscreteAction>(&action)) {
        groups.push_back(static_cast<std::size_t>(discrete->n));
    } else if (const auto* several = std::get_if<MultiDiscreteAction>(&action)) {
        for (const std::int64_t size : several->sizes) groups.push_back(static_cast<std::size_t>(size));
    }
    return groups;
}

const char* const who = "its head";

/// The first register of a head over choices, with its groups and its mask.
struct Choices {
    std::size_t scores;
    std::vector<std::size_t> groups;
    std::optional<std::size_t> mask;

    Mask masks(const Frame& f) const { return mask ? static_cast<Mask>(f.observation[*mask]) : nullptr; }
};

std::string described(const PolicySpec& spec) {
    return std::string(head_name(spec.head.kind));
}

void expect(const PolicySpec& spec, std::size_t inputs, std::size_t tensors) {
    const Head& head = spec.head;
    if (head.inputs.size() == inputs && head.tensors.size() == tensors) return;
    refuse(who, described(spec) + " has " + std::to_string(head.inputs.size()) + " inputs and " +
                    std::to_string(head.tensors.size()) + " tensors; expected " + std::to_string(inputs) + " and " +
                    std::to_string(tensors));
}

Register read_vector(Compiler& compiler, std::size_t index, std::size_t values) {
    const std::string& name = compiler.spec().head.inputs[index];
    Register x = compiler.floats(name, who);
    if (x.shape.size() != 1 || x.values != values) {
        refuse(who, "reads '" + name + "' of shape " + to_string(x.shape) + "; its action needs [" +
                        std::to_string(values) + "]");
    }
    return x;
}

Choices read_choices(Compiler& compiler) {
    const PolicySpec& spec = compiler.spec();
    Choices result;
    result.groups = groups_of(spec.action);
    std::size_t total = 0;
    for (const std::size_t size : result.groups) {
        if (size > most_register_values) refuse(who, "has " + std::to_string(size) + " choices, which are too many");
        total += size;
    }
    const Register scores = read_vector(compiler, 0, total);
    result.scores = scores.at;
    if (spec.head.mask) {
        const Register& mask = compiler.find(*spec.head.mask, who);
        if (!mask.input || mask.type != ElementType::Bool || mask.shape != scores.shape) {
            refuse(who, "has the mask '" + *spec.head.mask + "', which is " + std::string(element_name(mask.type)) +
                            to_string(mask.shape) + "; expected an observation of bool" + to_string(scores.shape));
        }
        result.mask = mask.input;
    }
    return result;
}

Decide compile_categorical(Compiler& compiler) {
    expect(compiler.spec(), 1, 0);
    Choices c = read_choices(compiler);
    std::size_t largest = 0;
    for (const std::size_t size : c.groups) largest = std::max(largest, size);
    std::shared_ptr<std::vector<double>> cumulative = std::make_shared<std::vector<double>>(largest);
    return [c = std::move(c), cumulative = std::move(cumulative)](const Frame& f, const float* noise, Answer& answer) {
        const float* logits = f.registers + c.scores;
        Mask mask = c.masks(f);
        for (std::size_t group = 0; group < c.groups.size(); ++group) {
            const std::size_t size = c.groups[group];
            const Outcome outcome =
                draw(logits, mask, size, noise[group], cumulative->data(), answer.choices[group], answer.log_prob);
            if (outcome != Outcome::Decided) return outcome;
            logits += size;
            if (mask != nullptr) mask += size;
        }
        return Outcome::Decided;
    };
}

Decide compile_greedy(Compiler& compiler) {
    expect(compiler.spec(), 1, 0);
    return [c = read_choices(compiler)](const Frame& f, const float*, Answer& answer) {
        const float* scores = f.registers + c.scores;
        Mask mask = c.masks(f);
        for (std::size_t group = 0; group < c.groups.size(); ++group) {
            const Outcome outcome = best(scores, mask, c.groups[group], answer.choices[group]);
            if (outcome != Outcome::Decided) return outcome;
            scores += c.groups[group];
            if (mask != nullptr) mask += c.groups[group];
        }
        return Outcome::Decided;
    };
}

Decide compile_epsilon_greedy(Compiler& compiler) {
    expect(compiler.spec(), 1, 1);
    const std::size_t epsilon = compiler.tensor(compiler.spec().head.tensors[0], {1}, who);
    return [c = read_choices(compiler), epsilon](const Frame& f, const float* noise, Answer& answer) {
        const std::size_t choices = c.groups[0];
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

/// Half the width and the middle of each bound, in float32 like everything else.
struct Bounds {
    std::vector<float> scale, middle, log_scale;
};

Bounds finite_bounds(const BoxAction& box) {
    Bounds bounds;
    for (std::size_t i = 0; i < box.low.size(); ++i) {
        const auto low = static_cast<float>(box.low[i]), high = static_cast<float>(box.high[i]);
        if (!std::isfinite(low) || !std::isfinite(high)) {
            refuse(who, "squashes its actions, but number " + std::to_string(i) + " has no finite bounds");
        }
        bounds.scale.push_back((high - low) / 2.0F);
        bounds.middle.push_back((high + low) / 2.0F);
        bounds.log_scale.push_back(std::log(bounds.scale.back()));
    }
    return bounds;
}

Outcome finite(const Answer& answer, std::size_t size) {
    bool all = std::isfinite(answer.log_prob);
    for (std::size_t i = 0; i < size; ++i) all = all && std::isfinite(answer.numbers[i]);
    return all ? Outcome::Decided : Outcome::NotFinite;
}

/// tanh of the values from this register on, stretched to the bounds.
Decide squash(std::size_t value, Bounds bounds) {
    return [value, bounds = std::move(bounds)](const Frame& f, const float*, Answer& answer) {
        const std::size_t size = bounds.scale.size();
        for (std::size_t i = 0; i < size; ++i) {
            answer.numbers[i] = std::tanh(f.registers[value + i]) * bounds.scale[i] + bounds.middle[i];
        }
        return finite(answer, size);
    };
}

Decide compile_deterministic(Compiler& compiler, const BoxAction& box) {
    expect(compiler.spec(), 1, 0);
    const std::size_t size = box.low.size(), value = read_vector(compiler, 0, size).at;
    const Settings& settings = compiler.spec().head.settings;
    const auto squashes = settings.find("squash");
    if (squashes == settings.end() || squashes->second != Setting(std::string("tanh"))) {
        return [=](const Frame& f, const float*, Answer& answer) {
            for (std::size_t i = 0; i < size; ++i) answer.numbers[i] = f.registers[value + i];
            return finite(answer, size);
        };
    }
    return squash(value, finite_bounds(box));
}

Decide compile_gaussian(Compiler& compiler, const BoxAction& box) {
    expect(compiler.spec(), 1, 1);
    const std::size_t size = box.low.size(), mean = read_vector(compiler, 0, size).at;
    const Shape shape{static_cast<std::uint32_t>(size)};
    const std::size_t log_std = compiler.tensor(compiler.spec().head.tensors[0], shape, who);
    return [=](const Frame& f, const float* noise, Answer& answer) {
        float sum = 0.0F;
        for (std::size_t i = 0; i < size; ++i) {
            const float unit = normal(noise[2 * i], noise[2 * i + 1]), spread = f.weights[log_std + i];
            answer.numbers[i] = f.registers[mean + i] + std::exp(spread) * unit;
            sum += 0.5F * (unit * unit) + spread + half_log_two_pi;
        }
        answer.log_prob = -sum;
        return finite(answer, size);
    };
}

/// log(1 + e^x), without overflow.
float softplus(float x) {
    return (x > 0.0F ? x : 0.0F) + std::log1p(std::exp(-std::abs(x)));
}

/// Which numbers of the noise make a uniform action, and which says whether to take it.
struct Places {
    std::size_t first, apart, last;

    /// The second of each pair, an angle, of heads with a pair for each number; then one more.
    static Places angles(std::size_t size) { return {1, 2, 2 * size}; }
    /// Those that follow the numbers drawn before the program.
    static Places after(std::size_t drawn, std::size_t size) { return {2 * drawn, 1, 2 * drawn + size}; }
};

/// With probability epsilon anything within the bounds, each as likely as any other; else what the other head decides.
Decide sometimes_uniform(Decide otherwise, const BoxAction& box, std::size_t epsilon, Places places, bool noted) {
    const std::size_t size = box.low.size();
    Bounds bounds = finite_bounds(box);
    float log_prob = 0.0F;
    for (const float scale : bounds.scale) log_prob -= noted ? std::log(2.0F * scale) : 0.0F;
    return [=, otherwise = std::move(otherwise), bounds = std::move(bounds)](const Frame& f, const float* noise,
                                                                             Answer& answer) {
        const Outcome outcome = otherwise(f, noise, answer);
        if (outcome != Outcome::Decided || !(noise[places.last] < f.weights[epsilon])) return outcome;
        for (std::size_t i = 0; i < size; ++i) {
            const float share = 2.0F * noise[places.first + places.apart * i] - 1.0F;
            answer.numbers[i] = share * bounds.scale[i] + bounds.middle[i];
        }
        answer.log_prob = log_prob;
        return finite(answer, size);
    };
}

/// A Gaussian squashed into the bounds, with the change of variables in its stable form.
Decide compile_tanh_gaussian(Compiler& compiler, const BoxAction& box) {
    const std::vector<std::string>& tensors = compiler.spec().head.tensors;
    expect(compiler.spec(), 2, tensors.empty() ? 0 : 1);
    const Settings& settings = compiler.spec().head.settings;
    const auto low = static_cast<float>(number(settings, "log_std_low", who));
    const auto high = static_cast<float>(number(settings, "log_std_high", who));
    const std::size_t size = box.low.size(), mean = read_vector(compiler, 0, size).at;
    const std::size_t log_std = read_vector(compiler, 1, size).at;
    Decide sample = [=, bounds = finite_bounds(box)](const Frame& f, const float* noise, Answer& answer) {
        float sum = 0.0F;
        for (std::size_t i = 0; i < size; ++i) {
            const float above = f.registers[log_std + i] < low ? low : f.registers[log_std + i];
            const float spread = above > high ? high : above, unit = normal(noise[2 * i], noise[2 * i + 1]);
            const float raw = f.registers[mean + i] + std::exp(spread) * unit;
            const float gaussian = 0.5F * (unit * unit) + spread + half_log_two_pi;
            const float correction = 2.0F * (log_two - raw - softplus(-2.0F * raw)) + bounds.log_scale[i];
            answer.numbers[i] = std::tanh(raw) * bounds.scale[i] + bounds.middle[i];
            sum += gaussian + correction;
        }
        answer.log_prob = -sum;
        return finite(answer, size);
    };
    if (tensors.empty()) return sample;
    return sometimes_uniform(std::move(sample), box, compiler.tensor(tensors[0], {1}, who), Places::angles(size), true);
}

/// The memory of a head whose noise goes on from that of the last decision (an Ornstein-Uhlenbeck process).
struct Drift {
    std::size_t before, next;
    float keep;
};

std::optional<Drift> read_drift(Compiler& compiler, std::size_t size) {
    const Head& head = compiler.spec().head;
    const std::optional<std::string> next = head.output();
    if (next.has_value() != (head.inputs.size() == 2)) {
        refuse(who, "perturbed needs both the register of its last noise and the setting 'next', or neither");
    }
    if (!next) return std::nullopt;
    const float theta = static_cast<float>(number(head.settings, "theta", who));
    const std::size_t before = read_vector(compiler, 1, size).at;
    return Drift{before, compiler.assign(*next, {static_cast<std::uint32_t>(size)}).at, 1.0F - theta};
}

/// tanh(mean) plus noise, clipped to [-1, 1] and stretched to the bounds.
Decide compile_perturbed(Compiler& compiler, const BoxAction& box) {
    const Head& head = compiler.spec().head;
    expect(compiler.spec(), head.inputs.size() == 2 ? 2 : 1, 2);
    const std::size_t size = box.low.size(), mean = read_vector(compiler, 0, size).at;
    const std::size_t deviation = compiler.tensor(head.tensors[0], {static_cast<std::uint32_t>(size)}, who);
    const std::size_t epsilon = compiler.tensor(head.tensors[1], {1}, who);
    const std::optional<Drift> drift = read_drift(compiler, size);
    Decide sample = [=, bounds = finite_bounds(box)](const Frame& f, const float* noise, Answer& answer) {
        for (std::size_t i = 0; i < size; ++i) {
            float shift = f.weights[deviation + i] * normal(noise[2 * i], noise[2 * i + 1]);
            if (drift) {
                shift = drift->keep * f.registers[drift->before + i] + shift;
                f.registers[drift->next + i] = shift;
            }
            const float value = std::tanh(f.registers[mean + i]) + shift;
            const float above = value < -1.0F ? -1.0F : value;
            answer.numbers[i] = (above > 1.0F ? 1.0F : above) * bounds.scale[i] + bounds.middle[i];
        }
        return finite(answer, size);
    };
    return sometimes_uniform(std::move(sample), box, epsilon, Places::angles(size), false);
}

/// tanh of a value that the program made of chance, stretched to the bounds.
Decide compile_noise_conditioned(Compiler& compiler, const BoxAction& box) {
    const Head& head = compiler.spec().head;
    expect(compiler.spec(), 1, head.tensors.empty() ? 0 : 1);
    const std::size_t size = box.low.size(), value = read_vector(compiler, 0, size).at;
    Decide squashed = squash(value, finite_bounds(box));
    if (head.tensors.empty()) return squashed;
    const std::size_t epsilon = compiler.tensor(head.tensors[0], {1}, who), drawn = head.chance()->size;
    return sometimes_uniform(std::move(squashed), box, epsilon, Places::after(drawn, size), false);
}

}  // namespace

void Stir::operator()(float* registers, const float* noise) const noexcept {
    for (std::size_t i = 0; i < values; ++i) {
        registers[at + i] = normal(noise[2 * i], noise[2 * i + 1]) * deviation;
    }
}

std::optional<Stir> compile_chance(Compiler& compiler) {
    const Head& head = compiler.spec().head;
    if (head.kind != HeadKind::NoiseConditioned) return std::nullopt;
    const std::optional<Chance> chance = head.chance();
    if (!chance || chance->size > most_noise) {
        refuse(who,
               "draws chance before the program runs, which needs the setting 'noise', a register, and 'size', a "
               "number from 1 to " +
                   std::to_string(most_noise));
    }
    const double deviation = number(head.settings, "std", who);
    if (deviation < 0.0) refuse(who, "has a setting 'std' below 0");
    const Register& drawn = compiler.assign(chance->name, {static_cast<std::uint32_t>(chance->size)});
    return Stir{drawn.at, drawn.values, static_cast<float>(deviation)};
}

Decide compile_head(Compiler& compiler) {
    const PolicySpec& spec = compiler.spec();
    const auto* box = std::get_if<BoxAction>(&spec.action);
    if (box != nullptr && spec.head.mask) refuse(who, "has a mask, but its action has no choices");
    switch (spec.head.kind) {
        case HeadKind::Categorical:
            if (box == nullptr) return compile_categorical(compiler);
            break;
        case HeadKind::EpsilonGreedy:
            if (std::holds_alternative<DiscreteAction>(spec.action)) return compile_epsilon_greedy(compiler);
            break;
        case HeadKind::Deterministic:
            return box == nullptr ? compile_greedy(compiler) : compile_deterministic(compiler, *box);
        case HeadKind::Gaussian:
            if (box != nullptr) return compile_gaussian(compiler, *box);
            break;
        case HeadKind::TanhGaussian:
            if (box != nullptr) return compile_tanh_gaussian(compiler, *box);
            break;
        case HeadKind::Perturbed:
            if (box != nullptr) return compile_perturbed(compiler, *box);
            break;
        case HeadKind::NoiseConditioned:
            if (box != nullptr) return compile_noise_conditioned(compiler, *box);
            break;
    }
    refuse(who, "of kind '" + described(spec) + "' cannot produce actions of this kind");
}

}  // namespace rl4sys::detail
