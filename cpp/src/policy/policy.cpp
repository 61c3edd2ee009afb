#include "rl4sys/policy.hpp"

#include <stdexcept>
#include <utility>

#include "policy/kernel_sets.hpp"
#include "policy/plan.hpp"

namespace rl4sys {
namespace {

const detail::Kernels& named_kernels(const std::string& name) {
    std::string names;
    for (const detail::Kernels* kernels : detail::available_kernels()) {
        if (kernels->name == name) return *kernels;
        names += (names.empty() ? "" : ", ") + std::string(kernels->name);
    }
    throw std::invalid_argument("There is no kernel set '" + name.substr(0, 32) + "' on this machine; it has " + names +
                                ".");
}

}  // namespace

const char* describe(Outcome outcome) noexcept {
    switch (outcome) {
        case Outcome::Decided: return "decided";
        case Outcome::NothingAllowed:
            return "There is no allowed action: the mask forbids all, or there are no candidates. Allow one choice, or "
                   "end the episode.";
        case Outcome::NotFinite:
            return "The policy's scores are NaN or infinite. Look for such values in the observation and the weights.";
        case Outcome::IndexOutOfRange:
            return "An observation is used as an index and exceeds its table. Compare it with the agreed range.";
    }
    return "unknown";
}

const char* kernel_set() noexcept {
    return detail::best_kernels().name;
}

std::vector<std::string> kernel_sets() {
    std::vector<std::string> names;
    for (const detail::Kernels* kernels : detail::available_kernels()) names.emplace_back(kernels->name);
    return names;
}

Policy::Policy(PolicySpec spec, SharedWeights weights)
    : plan_(std::make_unique<detail::Plan>(std::move(spec), std::move(weights), detail::best_kernels())) {}
Policy::Policy(PolicySpec spec, SharedWeights weights, const std::string& kernel_set)
    : plan_(std::make_unique<detail::Plan>(std::move(spec), std::move(weights), named_kernels(kernel_set))) {}
Policy::Policy(Policy&&) noexcept = default;
Policy& Policy::operator=(Policy&&) noexcept = default;
Policy::~Policy() = default;

const PolicySpec& Policy::spec() const noexcept {
    return plan_->spec();
}
std::size_t Policy::weight_count() const noexcept {
    return plan_->weight_count();
}
std::size_t Policy::noise_size() const noexcept {
    return rl4sys::noise_size(plan_->spec());
}
std::size_t Policy::action_size() const noexcept {
    return plan_->action_size();
}
std::size_t Policy::carry_size() const noexcept {
    return plan_->carry_size();
}
void Policy::load(SharedWeights weights) {
    plan_->load(std::move(weights));
}
const SharedWeights& Policy::weights() const noexcept {
    return plan_->weights();
}
const char* Policy::kernel_set() const noexcept {
    return plan_->kernel_set();
}

Decision Policy::decide(const void* const* observation, const float* noise, const float* carry) noexcept {
    return plan_->decide(observation, noise, carry);
}

Decisions Policy::decide_rows(std::size_t rows, const void* const* observation, const float* noise,
                              const float* carry) {
    return plan_->decide_rows(rows, observation, noise, carry);
}

}  // namespace rl4sys
