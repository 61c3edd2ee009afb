#include "rl4sys/policy.hpp"

#include <utility>

#include "policy/plan.hpp"

namespace rl4sys {

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

Policy::Policy(PolicySpec spec, SharedWeights weights)
    : plan_(std::make_unique<detail::Plan>(std::move(spec), std::move(weights), detail::best_kernels())) {}
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

Decision Policy::decide(const void* const* observation, const float* noise, const float* carry) noexcept {
    return plan_->decide(observation, noise, carry);
}

}  // namespace rl4sys
