#include "rl4sys/policy_spec.hpp"

#include <cstddef>
#include <utility>

#include "rl4sys/policy.hpp"

namespace rl4sys {
namespace {

/// Every head of the format, with its name in specs.
constexpr std::pair<HeadKind, std::string_view> heads[] = {
    {HeadKind::Categorical, "categorical"},
    {HeadKind::EpsilonGreedy, "epsilon_greedy"},
    {HeadKind::Gaussian, "gaussian"},
    {HeadKind::TanhGaussian, "tanh_gaussian"},
    {HeadKind::Deterministic, "deterministic"},
    {HeadKind::Perturbed, "perturbed"},
    {HeadKind::NoiseConditioned, "noise_conditioned"},
    {HeadKind::Mixed, "mixed"},
    {HeadKind::Planned, "planned"},
};

/// Uniform numbers that seed the generator of a head that plans.
constexpr std::size_t planning_noise = 4;

std::size_t box_size(const ActionSpec& action) noexcept {
    const auto* box = std::get_if<BoxAction>(&action);
    return box == nullptr ? 0 : box->low.size();
}

/// A setting that is a text, if it is there.
std::optional<std::string> text(const Settings& settings, const char* name) {
    const auto found = settings.find(name);
    if (found == settings.end()) return std::nullopt;
    const auto* value = std::get_if<std::string>(&found->second);
    return value == nullptr ? std::nullopt : std::optional<std::string>(*value);
}

/// How many numbers are drawn before the program runs; 0 unless the settings say so.
std::size_t chance_size(const Head& head) noexcept {
    const auto size = head.settings.find("size");
    if (head.kind != HeadKind::NoiseConditioned || size == head.settings.end()) return 0;
    const auto* count = std::get_if<std::int64_t>(&size->second);
    return count == nullptr || *count < 1 ? 0 : static_cast<std::size_t>(*count);
}

std::size_t head_noise_size(const PolicySpec& spec) noexcept {
    switch (spec.head.kind) {
        case HeadKind::Categorical:
            if (const auto* several = std::get_if<MultiDiscreteAction>(&spec.action)) return several->sizes.size();
            return 1;
        case HeadKind::EpsilonGreedy: return 2;
        case HeadKind::Gaussian: return 2 * box_size(spec.action);
        // The last number decides whether to take a uniform action.
        case HeadKind::TanhGaussian: return 2 * box_size(spec.action) + spec.head.tensors.size();
        case HeadKind::Perturbed: return 2 * box_size(spec.action) + 1;
        case HeadKind::NoiseConditioned:
            return 2 * chance_size(spec.head) + (spec.head.tensors.empty() ? 0 : box_size(spec.action) + 1);
        case HeadKind::Mixed: {
            const auto* mixed = std::get_if<MixedAction>(&spec.action);
            return mixed == nullptr ? 0 : mixed->sizes.size() + 2 * mixed->low.size();
        }
        case HeadKind::Planned: return planning_noise;
        case HeadKind::Deterministic: break;
    }
    return 0;
}

}  // namespace

ArraySpec action_array(const ActionSpec& action) {
    if (const auto* several = std::get_if<MultiDiscreteAction>(&action)) {
        return {"action", ElementType::Int64, {static_cast<std::uint32_t>(several->sizes.size())}};
    }
    if (const auto* box = std::get_if<BoxAction>(&action)) {
        return {"action", ElementType::Float32, {static_cast<std::uint32_t>(box->low.size())}};
    }
    if (const auto* mixed = std::get_if<MixedAction>(&action)) {
        return {"action", ElementType::Float32, {static_cast<std::uint32_t>(mixed->sizes.size() + mixed->low.size())}};
    }
    return {"action", ElementType::Int64, {}};
}

std::vector<ArraySpec> PolicySpec::noted() const {
    switch (head.kind) {
        case HeadKind::Categorical:
        case HeadKind::Gaussian:
        case HeadKind::Mixed:
        case HeadKind::TanhGaussian: return {{"log_prob", ElementType::Float32, {}}};
        case HeadKind::EpsilonGreedy:
        case HeadKind::Deterministic:
        case HeadKind::Perturbed:
        case HeadKind::Planned:
        case HeadKind::NoiseConditioned: break;
    }
    return {};
}

std::vector<ArraySpec> PolicySpec::carry_arrays() const {
    std::vector<ArraySpec> arrays;
    for (const Memory& memory : program.carry) arrays.push_back({memory.name, ElementType::Float32, memory.shape});
    return arrays;
}

std::string_view head_name(HeadKind kind) noexcept {
    for (const auto& [known, name] : heads) {
        if (known == kind) return name;
    }
    return "unknown";
}

const std::vector<HeadKind>& named_heads() {
    static const std::vector<HeadKind> kinds = [] {
        std::vector<HeadKind> all;
        for (const auto& entry : heads) all.push_back(entry.first);
        return all;
    }();
    return kinds;
}

const std::vector<HeadKind>& known_heads() {
    static const std::vector<HeadKind> kinds = [] {
        std::vector<HeadKind> all;
        for (const HeadKind kind : named_heads()) {
            if (kind != HeadKind::Planned) all.push_back(kind);
        }
        return all;
    }();
    return kinds;
}

std::string_view distribution_name(Distribution distribution) noexcept {
    return distribution == Distribution::Normal ? "normal" : "uniform";
}

std::size_t Program::uniform_numbers() const noexcept {
    std::size_t count = 0;
    for (const Chance& one : chance) count += one.uniform_numbers();
    return count;
}

std::optional<std::string> Head::output() const {
    return kind == HeadKind::Perturbed ? text(settings, "next") : std::nullopt;
}

std::optional<std::string> Head::action_register() const {
    return text(settings, "action");
}

std::optional<Chance> Head::chance() const {
    const std::size_t size = chance_size(*this);
    const std::optional<std::string> name = text(settings, "noise");
    if (size == 0 || !name) return std::nullopt;
    return Chance{*name, size};
}

std::size_t noise_size(const PolicySpec& spec) noexcept {
    return spec.program.uniform_numbers() + head_noise_size(spec);
}

}  // namespace rl4sys
