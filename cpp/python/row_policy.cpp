#include "row_policy.hpp"

#include <cstring>
#include <optional>
#include <utility>

#include "spec_reader.hpp"

namespace rl4sys::python {
namespace {

/// Multiplications from which other threads of Python may run meanwhile; handing over takes a few microseconds.
constexpr std::size_t long_work = std::size_t{1} << 17;

const detail::Kernels& kernels_named(const std::string& name) {
    for (const detail::Kernels* kernels :
         {&detail::best_kernels(), detail::avx2_kernels(), &detail::baseline_kernels()}) {
        if (kernels != nullptr && kernels->name == name) return *kernels;
    }
    throw nb::value_error(("This machine has no kernels named '" + name + "'.").c_str());
}

SharedWeights no_weights(const PolicySpec& spec) {
    return std::make_shared<const Weights>(Layout(spec.program.tensors).size());
}

std::unique_ptr<detail::Plan> plan_of(PolicySpec spec, const detail::Kernels& kernels) {
    SharedWeights weights = no_weights(spec);
    return std::make_unique<detail::Plan>(std::move(spec), std::move(weights), kernels);
}

}  // namespace

std::vector<std::string> kernel_sets() {
    std::vector<std::string> names;
    for (const detail::Kernels* kernels :
         {&detail::best_kernels(), detail::avx2_kernels(), &detail::baseline_kernels()}) {
        if (kernels != nullptr && (names.empty() || names.back() != kernels->name)) names.push_back(kernels->name);
    }
    return names;
}

RowPolicy::RowPolicy(nb::dict spec, const std::string& kernels)
    : plan_(plan_of(read_spec(std::move(spec)), kernels_named(kernels))),
      noise_size_(rl4sys::noise_size(plan_->spec())),
      action_(action_array(plan_->spec().action)),
      carry_(plan_->spec().carry_arrays()),
      rows_(plan_->spec().program.inputs.size()),
      memory_(plan_->carry_size()) {}

void RowPolicy::load(nb::handle weights) {
    const std::size_t count = plan_->weight_count();
    const ArrayObject* array = as_array(weights);
    const char* data = rows_of(weights, {"weights", ElementType::Float32, {}}, count);
    if (static_cast<std::size_t>(array->shape[0]) != count) {
        throw nb::value_error("There are more weights than the policy has; they belong to another architecture.");
    }
    auto copied = std::make_shared<Weights>(count);
    if (count > 0) std::memcpy(copied->data(), data, count * sizeof(float));
    plan_->load(std::move(copied));
}

RowPolicy::Batch RowPolicy::batch_of(nb::tuple observation, std::size_t first, std::size_t count,
                                     nb::handle carry) const {
    const std::vector<ArraySpec>& inputs = spec().program.inputs;
    if (observation.size() != inputs.size()) throw nb::value_error("Expected one array for each input of the policy.");
    Batch batch;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        const std::size_t bytes = inputs[i].bytes();
        batch.observation.push_back({rows_of(observation[i], inputs[i], first + count) + first * bytes, bytes});
    }
    for (std::size_t i = 0; i < carry_.size() && !carry.is_none(); ++i) {
        batch.carry.push_back({rows_of(carry[i], carry_[i], count), carry_[i].bytes()});
    }
    return batch;
}

Decision RowPolicy::decide_row(const Batch& batch, std::size_t row, const float* noise) noexcept {
    for (std::size_t i = 0; i < rows_.size(); ++i) rows_[i] = batch.observation[i].row(row);
    auto* recalled = reinterpret_cast<char*>(memory_.data());
    for (const Column& memory : batch.carry) {
        std::memcpy(recalled, memory.row(row), memory.bytes);
        recalled += memory.bytes;
    }
    return plan_->decide(rows_.data(), noise, batch.carry.empty() ? nullptr : memory_.data());
}

bool RowPolicy::decide_rows(nb::tuple observation, std::size_t first, std::size_t count, nb::handle noise,
                            nb::handle carry, nb::handle action, nb::handle log_prob, nb::tuple next_carry,
                            nb::handle outcomes) {
    if (next_carry.size() != carry_.size()) throw nb::value_error("Expected one array for each memory of the policy.");
    const Batch batch = batch_of(observation, first, count, carry);
    const auto length = static_cast<std::uint32_t>(noise_size_);
    const ArraySpec number{"log_prob", ElementType::Float32, {}};
    const auto* numbers =
        reinterpret_cast<const float*>(rows_of(noise, {"noise", ElementType::Float32, {length}}, count));
    char* actions = rows_of(action, action_, count, true);
    char* log_probs = log_prob.is_none() ? nullptr : rows_of(log_prob, number, count, true);
    char* codes = rows_of(outcomes, {"outcomes", ElementType::UInt8, {}}, count, true);
    std::vector<char*> remembered;
    for (std::size_t i = 0; i < carry_.size(); ++i) {
        remembered.push_back(rows_of(next_carry[i], carry_[i], count, true));
    }
    std::optional<nb::gil_scoped_release> released;
    if (plan_->weight_count() * count >= long_work) released.emplace();
    bool all = true;
    for (std::size_t row = 0; row < count; ++row) {
        const Decision decision = decide_row(batch, row, numbers + row * noise_size_);
        codes[row] = static_cast<char>(decision.outcome);
        if (decision.outcome != Outcome::Decided) {
            all = false;
            continue;
        }
        const std::size_t bytes = action_.bytes();
        std::memcpy(actions + row * bytes, chosen_by(decision), bytes);
        if (log_probs != nullptr) std::memcpy(log_probs + row * sizeof(float), &decision.log_prob, sizeof(float));
        const float* memory = decision.carry;
        for (std::size_t i = 0; i < remembered.size() && memory != nullptr; ++i) {
            std::memcpy(remembered[i] + row * carry_[i].bytes(), memory, carry_[i].bytes());
            memory += carry_[i].values();
        }
    }
    return all;
}

}  // namespace rl4sys::python
