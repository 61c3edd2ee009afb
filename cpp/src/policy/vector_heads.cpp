#include "policy/vector_heads.hpp"

#include <cmath>

#include "policy/heads.hpp"

namespace rl4sys::detail {
namespace {

constexpr float half_log_two_pi = 0.918938533F;
constexpr float log_two = 0.693147181F;

/// Half the width and the middle of each bound, in float32 like everything else.
struct Bounds {
    std::vector<float> scale, middle, log_scale;
};

Bounds finite_bounds(const BoxAction& box) {
    Bounds bounds;
    for (std::size_t i = 0; i < box.low.size(); ++i) {
        const auto low = static_cast<float>(box.low[i]), high = static_cast<float>(box.high[i]);
        if (!std::isfinite(low) || !std::isfinite(high)) {
            refuse(head_label, "squashes its actions, but number " + std::to_string(i) + " has no finite bounds");
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

float tanh_of(float x) {
    return std::tanh(x);
}

/// Also brings NaN into the result, which is then not finite.
float clipped(float x) {
    return x < -1.0F ? -1.0F : x > 1.0F ? 1.0F : x;
}

/// The values from this register on, brought into [-1, 1] by a function and scaled to the bounds.
Decide squash(std::size_t value, Bounds bounds, float (*into_unit)(float) = tanh_of) {
    return [value, into_unit, bounds = std::move(bounds)](const DecisionFrame& f, const float*, Answer& answer) {
        const std::size_t size = bounds.scale.size();
        for (std::size_t i = 0; i < size; ++i) {
            answer.numbers[i] = into_unit(f.registers[value + i]) * bounds.scale[i] + bounds.middle[i];
        }
        return finite(answer, size);
    };
}

Decide compile_deterministic(Compiler& compiler, const BoxAction& box) {
    expect_sizes(compiler.spec(), 1, 0);
    const std::size_t size = box.low.size(), value = read_vector(compiler, 0, size).at;
    const Settings& settings = compiler.spec().head.settings;
    const auto squashes = settings.find("squash");
    const bool clips = squashes != settings.end() && squashes->second == Setting(std::string("clip"));
    if (clips) return squash(value, finite_bounds(box), clipped);
    if (squashes == settings.end() || squashes->second != Setting(std::string("tanh"))) {
        return unchanged(value, size);
    }
    return squash(value, finite_bounds(box));
}

Decide compile_gaussian(Compiler& compiler, const BoxAction& box) {
    expect_sizes(compiler.spec(), 1, 1);
    const std::size_t size = box.low.size(), mean = read_vector(compiler, 0, size).at;
    const Shape shape{static_cast<std::uint32_t>(size)};
    const std::size_t log_std = compiler.tensor(compiler.spec().head.tensors[0], shape, head_label);
    return gaussian(mean, log_std, size);
}

/// log(1 + e^x), without overflow.
float softplus(float x) {
    return (x > 0.0F ? x : 0.0F) + std::log1p(std::exp(-std::abs(x)));
}

/// Which noise numbers make a uniform action, and which one decides whether to take it.
struct Places {
    std::size_t first, apart, last;

    /// The second of each pair, an angle, of heads with a pair for each number; then one more.
    static Places angles(std::size_t size) { return {1, 2, 2 * size}; }
    /// Those that follow the numbers drawn before the program.
    static Places after(std::size_t drawn, std::size_t size) { return {2 * drawn, 1, 2 * drawn + size}; }
};

/// With probability epsilon a uniform action within the bounds; else the action of the other head.
Decide sometimes_uniform(Decide otherwise, const BoxAction& box, std::size_t epsilon, Places places, bool noted) {
    const std::size_t size = box.low.size();
    Bounds bounds = finite_bounds(box);
    float log_prob = 0.0F;
    for (const float scale : bounds.scale) log_prob -= noted ? std::log(2.0F * scale) : 0.0F;
    return [=, otherwise = std::move(otherwise), bounds = std::move(bounds)](const DecisionFrame& f, const float* noise,
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
    expect_sizes(compiler.spec(), 2, tensors.empty() ? 0 : 1);
    const Settings& settings = compiler.spec().head.settings;
    const auto low = static_cast<float>(number(settings, "log_std_low", head_label));
    const auto high = static_cast<float>(number(settings, "log_std_high", head_label));
    const std::size_t size = box.low.size(), mean = read_vector(compiler, 0, size).at;
    const std::size_t log_std = read_vector(compiler, 1, size).at;
    Decide sample = [=, bounds = finite_bounds(box)](const DecisionFrame& f, const float* noise, Answer& answer) {
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
    return sometimes_uniform(std::move(sample), box, compiler.tensor(tensors[0], {1}, head_label), Places::angles(size),
                             true);
}

/// The memory of a head whose noise continues from the last decision (an Ornstein-Uhlenbeck process).
struct Drift {
    std::size_t before, next;
    float keep;
};

std::optional<Drift> read_drift(Compiler& compiler, std::size_t size) {
    const Head& head = compiler.spec().head;
    const std::optional<std::string> next = head.output();
    if (next.has_value() != (head.inputs.size() == 2)) {
        refuse(head_label, "perturbed needs both the register of its last noise and the setting 'next', or neither");
    }
    if (!next) return std::nullopt;
    const float theta = static_cast<float>(number(head.settings, "theta", head_label));
    const std::size_t before = read_vector(compiler, 1, size).at;
    return Drift{before, compiler.assign(*next, {static_cast<std::uint32_t>(size)}).at, 1.0F - theta};
}

/// tanh(mean) plus noise, clipped to [-1, 1] and scaled to the bounds.
Decide compile_perturbed(Compiler& compiler, const BoxAction& box) {
    const Head& head = compiler.spec().head;
    expect_sizes(compiler.spec(), head.inputs.size() == 2 ? 2 : 1, 2);
    const std::size_t size = box.low.size(), mean = read_vector(compiler, 0, size).at;
    const std::size_t deviation = compiler.tensor(head.tensors[0], {static_cast<std::uint32_t>(size)}, head_label);
    const std::size_t epsilon = compiler.tensor(head.tensors[1], {1}, head_label);
    const std::optional<Drift> drift = read_drift(compiler, size);
    Decide sample = [=, bounds = finite_bounds(box)](const DecisionFrame& f, const float* noise, Answer& answer) {
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

/// tanh of a value that the program computed from noise, scaled to the bounds.
Decide compile_noise_conditioned(Compiler& compiler, const BoxAction& box) {
    const Head& head = compiler.spec().head;
    expect_sizes(compiler.spec(), 1, head.tensors.empty() ? 0 : 1);
    const std::size_t size = box.low.size(), value = read_vector(compiler, 0, size).at;
    Decide squashed = squash(value, finite_bounds(box));
    if (head.tensors.empty()) return squashed;
    const std::size_t epsilon = compiler.tensor(head.tensors[0], {1}, head_label), drawn = head.chance()->size;
    return sometimes_uniform(std::move(squashed), box, epsilon, Places::after(drawn, size), false);
}

}  // namespace

Decide gaussian(std::size_t mean, std::size_t log_std, std::size_t size) {
    return [=](const DecisionFrame& f, const float* noise, Answer& answer) {
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

Decide unchanged(std::size_t value, std::size_t size) {
    return [=](const DecisionFrame& f, const float*, Answer& answer) {
        for (std::size_t i = 0; i < size; ++i) answer.numbers[i] = f.registers[value + i];
        return finite(answer, size);
    };
}

Decide compile_vector_head(Compiler& compiler, const BoxAction& box) {
    switch (compiler.spec().head.kind) {
        case HeadKind::Deterministic: return compile_deterministic(compiler, box);
        case HeadKind::Gaussian: return compile_gaussian(compiler, box);
        case HeadKind::TanhGaussian: return compile_tanh_gaussian(compiler, box);
        case HeadKind::Perturbed: return compile_perturbed(compiler, box);
        case HeadKind::NoiseConditioned: return compile_noise_conditioned(compiler, box);
        case HeadKind::Categorical:
        case HeadKind::Mixed:
        case HeadKind::Planned:
        case HeadKind::EpsilonGreedy: break;
    }
    return nullptr;
}

}  // namespace rl4sys::detail
