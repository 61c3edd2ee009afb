#include <algorithm>

#include "policy/plan.hpp"

namespace rl4sys::detail {
namespace {

/// How many rows are computed together at most: each weight that is read serves all of them.
constexpr std::size_t most_rows_at_once = 8;
/// How many values their registers have at most, so that the second cache holds them: images are decided one by one.
constexpr std::size_t most_values_at_once = std::size_t{1} << 17;

}  // namespace

std::size_t Plan::rows_at_once() const noexcept {
    return std::max<std::size_t>(1, std::min(most_rows_at_once, most_values_at_once / register_values_));
}

void Plan::reserve(std::size_t rows) {
    const std::size_t together = std::min(rows, rows_at_once());
    if (batch_.frames.size() < together) {
        batch_.registers = Registers(together * register_values_);
        batch_.observation.resize(together * spec_.program.inputs.size());
        batch_.frames.resize(together);
    }
    if (batch_.outcomes.size() >= rows) return;
    batch_.log_probs.resize(rows);
    batch_.carry.resize(rows * next_carry_.size());
    batch_.choices.resize(rows * choices_.size());
    batch_.numbers.resize(rows * numbers_.size());
    batch_.outcomes.resize(rows);
}

Decisions Plan::decide_rows(std::size_t rows, const void* const* observation, const float* noise, const float* carry) {
    reserve(rows);
    const std::size_t together = rows_at_once();
    for (std::size_t first = 0; first < rows; first += together) {
        decide_part(first, std::min(together, rows - first), observation, noise, carry);
    }
    Decisions decisions;
    decisions.rows = rows;
    decisions.outcomes = batch_.outcomes.data();
    decisions.choices = choices_.empty() ? nullptr : batch_.choices.data();
    decisions.numbers = numbers_.empty() ? nullptr : batch_.numbers.data();
    decisions.log_probs = batch_.log_probs.data();
    decisions.carry = memories_.empty() ? nullptr : batch_.carry.data();
    return decisions;
}

std::size_t Plan::next_shared_step(std::size_t step) const noexcept {
    while (step < steps_.size() && !steps_[step].gains_from_rows()) ++step;
    return step;
}

void Plan::run_row(DecisionFrame& frame, std::size_t first) const noexcept {
    // One row as far as possible before the next: its registers stay in the nearest cache.
    const std::size_t end = next_shared_step(first);
    for (std::size_t step = first; step < end; ++step) steps_[step](frame);
}

void Plan::decide_part(std::size_t first, std::size_t count, const void* const* observation, const float* noise,
                       const float* carry) {
    const std::size_t inputs = spec_.program.inputs.size(), drawn = noise_size(spec_);
    const auto noise_of = [&](std::size_t row) { return drawn == 0 ? nullptr : noise + row * drawn; };
    for (std::size_t index = 0; index < count; ++index) {
        const std::size_t row = first + index;
        const void** seen = batch_.observation.data() + index * inputs;
        for (std::size_t input = 0; input < inputs; ++input) {
            const ArraySpec& spec = spec_.program.inputs[input];
            const std::size_t bytes = spec.values() * element_size(spec.type);
            seen[input] = static_cast<const char*>(observation[input]) + row * bytes;
        }
        float* registers = batch_.registers.data() + index * register_values_;
        batch_.frames[index] = {&kernels_, first_weight(), seen, registers, Outcome::Decided};
        begin(batch_.frames[index], noise_of(row), carry == nullptr ? nullptr : carry + row * next_carry_.size());
        run_row(batch_.frames[index], 0);
    }
    for (std::size_t step = next_shared_step(0); step < steps_.size(); step = next_shared_step(step + 1)) {
        steps_[step](batch_.frames.data(), count);
        for (std::size_t index = 0; index < count; ++index) run_row(batch_.frames[index], step + 1);
    }
    for (std::size_t index = 0; index < count; ++index) {
        const std::size_t row = first + index;
        Answer answer{batch_.choices.data() + row * choices_.size(), batch_.numbers.data() + row * numbers_.size(),
                      0.0F};
        batch_.outcomes[row] =
            conclude(batch_.frames[index], noise_of(row), answer, batch_.carry.data() + row * next_carry_.size());
        batch_.log_probs[row] = answer.log_prob;
    }
}

}  // namespace rl4sys::detail
