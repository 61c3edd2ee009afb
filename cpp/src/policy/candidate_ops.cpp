#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "policy/op_compilers.hpp"

namespace rl4sys::detail {
namespace {

/// Rows [N, F] of which the first ones are candidates, and their number.
struct Candidates {
    /// Which observation the rows are, if they can be read where they are: absent ones are not even copied.
    std::optional<std::size_t> input;
    std::size_t at, most, features, count;

    const float* rows(const DecisionFrame& f) const {
        return input ? static_cast<const float*>(f.observation[*input]) : f.registers + at;
    }
    std::size_t existing(const DecisionFrame& f) const { return real_rows(f.registers[count], most); }
};

Candidates read_candidates(OpReader& op) {
    Register rows = op.raw(0);
    if (rows.type != ElementType::Float32) rows = op.floats(0), rows.input.reset();
    if (rows.shape.size() != 2) {
        op.fail("reads '" + op.op().inputs[0] + "' of shape " + to_string(rows.shape) + "; expected rows of features");
    }
    const Register count = op.vector(1);
    if (count.values != 1) op.fail("reads a count of shape " + to_string(count.shape) + "; expected one number");
    return {rows.input, rows.at, rows.shape[0], rows.shape[1], count.at};
}

/// The kernel of the setting `activation`; null for none.
Elementwise Kernels::*activation(const OpReader& op) {
    static constexpr std::array<std::pair<const char*, Elementwise Kernels::*>, 8> known{{
        {"none", nullptr},
        {"tanh", &Kernels::tanh},
        {"relu", &Kernels::relu},
        {"sigmoid", &Kernels::sigmoid},
        {"silu", &Kernels::silu},
        {"gelu", &Kernels::gelu},
        {"elu", &Kernels::elu},
        {"softplus", &Kernels::softplus},
    }};
    const auto found = op.op().settings.find("activation");
    for (const auto& [name, kernel] : known) {
        if (found != op.op().settings.end() && found->second == Setting(std::string(name))) return kernel;
    }
    op.fail("lacks the setting 'activation', or this runtime does not know its value");
}

}  // namespace

std::size_t real_rows(float count, std::size_t most) noexcept {
    // NaN fails every comparison: none then.
    if (!(count > 0.0F)) return 0;
    return count >= static_cast<float>(most) ? most : static_cast<std::size_t>(std::ceil(count));
}

Step compile_candidate_linear(OpReader& op) {
    const bool has_context = op.op().inputs.size() == 3;
    op.expect(has_context ? 3 : 2, 2);
    const Candidates rows = read_candidates(op);
    const Register context = has_context ? op.vector(2) : Register{};
    const std::uint32_t units = op.tensor_shape(0, 2)[1];
    const std::uint64_t width = std::uint64_t{rows.features} + context.values;
    const std::size_t weight = op.tensor(0, {static_cast<std::uint32_t>(width), units}), bias = op.tensor(1, {units});
    const std::size_t with_context = weight + rows.features * units;
    const std::size_t sums = op.scratch(units), written = op.scratch(1);
    const std::size_t out = op.output({static_cast<std::uint32_t>(rows.most), units});
    Elementwise Kernels::*activate = activation(op);
    return [=](DecisionFrame& f) {
        const std::size_t existing = rows.existing(f);
        const float* start = f.weights + bias;
        if (has_context) {
            // The part of the context is the same for all rows.
            f.kernels->linear(f.registers + context.at, context.values, f.weights + with_context, start,
                              f.registers + sums, units);
            start = f.registers + sums;
        }
        const float* x = rows.rows(f);
        float* to = f.registers + out;
        f.kernels->linear_rows(x, rows.features, existing, rows.features, f.weights + weight, start, to, units, units);
        if (activate != nullptr) (f.kernels->*activate)(to, to, existing * units);
        // Absent rows are zeros; only those of the last decision can be anything else.
        const auto before = static_cast<std::size_t>(f.registers[written]);
        if (before > existing) std::memset(to + existing * units, 0, (before - existing) * units * sizeof(float));
        f.registers[written] = static_cast<float>(existing);
    };
}

Step compile_candidate_pool(OpReader& op) {
    op.expect(2, 0);
    const Candidates rows = read_candidates(op);
    const std::size_t features = rows.features;
    if (features > most_register_values / 2) op.fail("pools more features than a register can have");
    const std::size_t out = op.output({static_cast<std::uint32_t>(2 * features + 1)});
    return [=](DecisionFrame& f) {
        const std::size_t existing = rows.existing(f);
        float* mean = f.registers + out;
        float* highest = mean + features;
        std::memset(mean, 0, (2 * features + 1) * sizeof(float));
        if (existing == 0) return;
        const float* x = rows.rows(f);
        std::memcpy(highest, x, features * sizeof(float));
        for (std::size_t row = 0; row < existing; ++row, x += features) {
            for (std::size_t i = 0; i < features; ++i) {
                mean[i] += x[i];
                // Not std::max: a NaN must stay.
                if (!(x[i] <= highest[i])) highest[i] = x[i];
            }
        }
        const float share = 1.0F / static_cast<float>(existing);
        for (std::size_t i = 0; i < features; ++i) mean[i] *= share;
        highest[features] = static_cast<float>(std::log(static_cast<double>(existing)));
    };
}

}  // namespace rl4sys::detail
