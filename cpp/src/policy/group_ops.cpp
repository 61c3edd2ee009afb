#include <memory>

#include "policy/op_compilers.hpp"

namespace rl4sys::detail {
namespace {

/// e^(x - peak) / sum over `count` values.
void normalise(const float* x, float* result, std::size_t count) {
    float peak = x[0];
    // Not std::max: a NaN must become the peak, and then every result.
    for (std::size_t i = 1; i < count; ++i) {
        if (!(x[i] <= peak)) peak = x[i];
    }
    float sum = 0.0F;
    for (std::size_t i = 0; i < count; ++i) {
        result[i] = std::exp(x[i] - peak);
        sum += result[i];
    }
    for (std::size_t i = 0; i < count; ++i) result[i] /= sum;
}

}  // namespace

Step compile_multiply(OpReader& op) {
    op.expect(2, 0);
    const Register first = op.floats(0), second = op.floats(1);
    if (first.shape != second.shape) {
        op.fail("multiplies shapes " + to_string(first.shape) + " and " + to_string(second.shape) +
                "; expected equal ones");
    }
    const std::size_t a = first.at, b = second.at, out = op.output(first.shape), count = first.values;
    return [=](DecisionFrame& f) {
        for (std::size_t i = 0; i < count; ++i) f.registers[out + i] = f.registers[a + i] * f.registers[b + i];
    };
}

Step compile_symlog(OpReader& op) {
    op.expect(1, 0);
    const Register x = op.floats(0);
    const std::size_t from = x.at, out = op.output(x.shape), count = x.values;
    return [=](DecisionFrame& f) {
        for (std::size_t i = 0; i < count; ++i) {
            const float value = f.registers[from + i];
            f.registers[out + i] = std::copysign(std::log1p(std::abs(value)), value);
        }
    };
}

Step compile_log(OpReader& op) {
    op.expect(1, 0);
    const Register x = op.floats(0);
    const std::size_t from = x.at, out = op.output(x.shape), count = x.values;
    return [=](DecisionFrame& f) {
        for (std::size_t i = 0; i < count; ++i) f.registers[out + i] = std::log(f.registers[from + i]);
    };
}

Step compile_softmax(OpReader& op) {
    op.expect(1, 0);
    const Register x = op.vector(0);
    const std::size_t groups = op.parts("groups", x.values), size = x.values / groups;
    const std::size_t from = x.at, out = op.output(x.shape);
    return [=](DecisionFrame& f) {
        for (std::size_t group = 0; group < groups; ++group) {
            normalise(f.registers + from + group * size, f.registers + out + group * size, size);
        }
    };
}

Step compile_grouped_linear(OpReader& op) {
    op.expect(1, 2);
    const Register x = op.vector(0);
    const Shape shape = op.tensor_shape(0, 3);
    const std::size_t groups = shape[0], width = shape[1], size = shape[2];
    if (groups * width != x.values || groups == 0 || groups * size > most_register_values) {
        op.fail("reads " + std::to_string(x.values) + " values for weights of shape " + to_string(shape));
    }
    const Shape result{static_cast<std::uint32_t>(groups * size)};
    const std::size_t weight = op.tensor(0, shape), bias = op.tensor(1, result);
    const std::size_t from = x.at, out = op.output(result);
    return [=](DecisionFrame& f) {
        for (std::size_t group = 0; group < groups; ++group) {
            f.kernels->linear(f.registers + from + group * width, width, f.weights + weight + group * width * size,
                              f.weights + bias + group * size, f.registers + out + group * size, size);
        }
    };
}

Step compile_gate(OpReader& op) {
    op.expect(2, 0);
    const float update_bias = op.real("update_bias");
    const Register x = op.vector(0), state = op.vector(1);
    const std::size_t groups = op.parts("groups", state.values), size = state.values / groups;
    if (x.values != 3 * state.values) {
        op.fail("reads " + std::to_string(x.values) + " values for a state of " + std::to_string(state.values) +
                "; expected three times as many");
    }
    const std::size_t from = x.at, before = state.at, out = op.output(state.shape);
    const std::size_t candidate = op.scratch(size), update = op.scratch(size);
    return [=](DecisionFrame& f) {
        float *c = f.registers + candidate, *u = f.registers + update;
        for (std::size_t group = 0; group < groups; ++group) {
            const float* parts = f.registers + from + 3 * group * size;
            const float* held = f.registers + before + group * size;
            float* next = f.registers + out + group * size;
            f.kernels->sigmoid(parts, c, size);
            for (std::size_t i = 0; i < size; ++i) c[i] *= parts[size + i];
            f.kernels->tanh(c, c, size);
            for (std::size_t i = 0; i < size; ++i) u[i] = parts[2 * size + i] + update_bias;
            f.kernels->sigmoid(u, u, size);
            for (std::size_t i = 0; i < size; ++i) next[i] = u[i] * c[i] + (1.0F - u[i]) * held[i];
        }
    };
}

namespace {

/// The place of the first highest value; `spread` is 0, or NaN if a value is NaN or the highest is infinite.
std::size_t best_class(const float* logits, std::size_t classes, double& spread) {
    std::size_t best = 0;
    float peak = logits[0];
    for (std::size_t i = 1; i < classes && !std::isnan(peak); ++i) {
        if (logits[i] <= peak) continue;
        best = i;
        peak = logits[i];
    }
    spread = static_cast<double>(peak) - static_cast<double>(peak);
    return best;
}

/// The first class whose cumulative probability exceeds u times the total, all in float64; the last if none does.
std::size_t draw_class(const float* logits, std::size_t classes, double unimix, float uniform, double* cumulative,
                       double& spread) {
    double peak = static_cast<double>(logits[0]), sum = 0.0, total = 0.0;
    for (std::size_t i = 1; i < classes; ++i) {
        if (!(logits[i] <= peak)) peak = static_cast<double>(logits[i]);
    }
    for (std::size_t i = 0; i < classes; ++i) {
        cumulative[i] = std::exp(static_cast<double>(logits[i]) - peak);
        sum += cumulative[i];
    }
    const double share = (1.0 - unimix) / sum, floor = unimix / static_cast<double>(classes);
    for (std::size_t i = 0; i < classes; ++i) {
        const double probability = cumulative[i] * share + floor;
        total += probability;
        cumulative[i] = total;
    }
    const double threshold = total * static_cast<double>(uniform);
    std::size_t chosen = 0;
    while (chosen + 1 < classes && cumulative[chosen] <= threshold) ++chosen;
    spread = total - total;
    return chosen;
}

}  // namespace

Step compile_latent(OpReader& op) {
    const bool draws = op.truth("draw");
    // Without draws the uniform numbers may be there all the same, unread.
    const bool is_given = draws || op.op().inputs.size() == 2;
    op.expect(is_given ? 2 : 1, 0);
    const Register logits = op.vector(0);
    const std::size_t groups = op.parts("groups", logits.values), classes = logits.values / groups;
    const double unimix = op.number_of("unimix");
    std::size_t uniform = 0;
    if (is_given) {
        const Register numbers = op.vector(1);
        if (numbers.values != groups) {
            op.fail("draws from " + std::to_string(groups) + " groups with " + std::to_string(numbers.values) +
                    " uniform numbers");
        }
        uniform = numbers.at;
    }
    const std::size_t from = logits.at, out = op.output(logits.shape);
    std::shared_ptr<std::vector<double>> cumulative = std::make_shared<std::vector<double>>(classes);
    return [=, cumulative = std::move(cumulative)](DecisionFrame& f) {
        for (std::size_t group = 0; group < groups; ++group) {
            const float* scores = f.registers + from + group * classes;
            double spread = 0.0;
            const std::size_t chosen =
                draws ? draw_class(scores, classes, unimix, f.registers[uniform + group], cumulative->data(), spread)
                      : best_class(scores, classes, spread);
            // Logits that are NaN or infinite stay visible: they must not become a choice like any other.
            float* one_hot = f.registers + out + group * classes;
            for (std::size_t i = 0; i < classes; ++i) {
                one_hot[i] = (i == chosen ? 1.0F : 0.0F) + static_cast<float>(spread);
            }
        }
    };
}

}  // namespace rl4sys::detail
