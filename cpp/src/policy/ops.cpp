#include "policy/ops.hpp"

#include <cmath>
#include <cstring>
#include <limits>

#include "policy/elements.hpp"
#include "policy/op_compilers.hpp"
#include "policy/op_reader.hpp"

namespace rl4sys::detail {
namespace {

Step compile_linear(OpReader& op) {
    if (op.op().tensors.size() != 1) op.expect(1, 2);
    op.expect(1, op.op().tensors.size());
    const Register x = op.vector(0);
    if (x.type != ElementType::Float32) {
        op.fail("reads '" + op.op().inputs[0] + "' of " + std::string(element_name(x.type)) +
                "; pass it through 'scale' before");
    }
    const std::uint32_t outputs = op.tensor_shape(0, 2)[1];
    const std::size_t weight = op.tensor(0, {x.shape[0], outputs});
    const std::size_t out = op.output({outputs});
    const std::size_t from = x.at, inputs = x.values;
    const bool is_biased = op.op().tensors.size() == 2;
    const std::size_t bias = is_biased ? op.tensor(1, {outputs}) : 0;
    const auto one_row = [=](DecisionFrame& f) {
        f.kernels->linear(f.registers + from, inputs, f.weights + weight, is_biased ? f.weights + bias : nullptr,
                          f.registers + out, outputs);
    };
    const auto rows = [=](DecisionFrame* f, std::size_t count) {
        const std::size_t stride = row_stride(f, count);
        f->kernels->linear_rows(f->registers + from, stride, count, inputs, f->weights + weight,
                                is_biased ? f->weights + bias : nullptr, f->registers + out, stride, outputs);
    };
    return {one_row, rows};
}

template <Elementwise Kernels::*Kernel>
Step compile_elementwise(OpReader& op) {
    op.expect(1, 0);
    const Register x = op.floats(0);
    const std::size_t from = x.at, out = op.output(x.shape), count = x.values;
    return [=](DecisionFrame& f) { (f.kernels->*Kernel)(f.registers + from, f.registers + out, count); };
}

Step compile_leaky_relu(OpReader& op) {
    op.expect(1, 0);
    const float slope = op.real("slope");
    const Register x = op.floats(0);
    const std::size_t from = x.at, out = op.output(x.shape), count = x.values;
    return [=](DecisionFrame& f) { f.kernels->leaky_relu(f.registers + from, slope, f.registers + out, count); };
}

Step compile_scale(OpReader& op) {
    op.expect(1, 0);
    const float factor = op.real("factor"), offset = op.real("offset");
    const Register x = op.floats(0);
    const std::size_t from = x.at, out = op.output(x.shape), count = x.values;
    return [=](DecisionFrame& f) { f.kernels->scale(f.registers + from, factor, offset, f.registers + out, count); };
}

Step compile_add(OpReader& op) {
    op.expect(2, 0);
    const Register first = op.floats(0), second = op.floats(1);
    if (first.shape != second.shape) {
        op.fail("adds shapes " + to_string(first.shape) + " and " + to_string(second.shape) + "; expected equal ones");
    }
    const std::size_t a = first.at, b = second.at, out = op.output(first.shape), count = first.values;
    return [=](DecisionFrame& f) { f.kernels->add(f.registers + a, f.registers + b, f.registers + out, count); };
}

Step compile_standardize(OpReader& op) {
    op.expect(1, 2);
    const float clip = op.real("clip");
    const Register x = op.floats(0);
    const std::size_t mean = op.tensor(0, x.shape), scale = op.tensor(1, x.shape);
    const std::size_t from = x.at, out = op.output(x.shape), count = x.values;
    return [=](DecisionFrame& f) {
        f.kernels->standardize(f.registers + from, f.weights + mean, f.weights + scale, clip, f.registers + out, count);
    };
}

/// The length of the last axis, over which norms are taken.
std::uint32_t last_axis(const OpReader& op, const Register& x) {
    if (x.shape.empty() || x.shape.back() == 0) {
        op.fail("reads a register of shape " + to_string(x.shape) + "; expected values along a last axis");
    }
    return x.shape.back();
}

Step compile_layer_norm(OpReader& op) {
    op.expect(1, 2);
    const float epsilon = op.real("epsilon");
    const Register x = op.floats(0);
    const std::uint32_t last = last_axis(op, x);
    const std::size_t gain = op.tensor(0, {last}), bias = op.tensor(1, {last});
    const std::size_t from = x.at, out = op.output(x.shape), count = x.values;
    return [=](DecisionFrame& f) {
        for (std::size_t at = 0; at < count; at += last) {
            f.kernels->layer_norm(f.registers + from + at, f.weights + gain, f.weights + bias, epsilon,
                                  f.registers + out + at, last);
        }
    };
}

Step compile_rms_norm(OpReader& op) {
    op.expect(1, 1);
    const float epsilon = op.real("epsilon");
    const Register x = op.floats(0);
    const std::uint32_t last = last_axis(op, x);
    const std::size_t gain = op.tensor(0, {last});
    const std::size_t from = x.at, out = op.output(x.shape), count = x.values;
    return [=](DecisionFrame& f) {
        for (std::size_t at = 0; at < count; at += last) {
            f.kernels->rms_norm(f.registers + from + at, f.weights + gain, epsilon, f.registers + out + at, last);
        }
    };
}

Step compile_channels_first(OpReader& op) {
    op.expect(1, 0);
    const Register x = op.image(0);
    const std::size_t from = x.at, out = op.output({x.shape[2], x.shape[0], x.shape[1]});
    const std::size_t channels = x.shape[2], pixels = std::size_t{x.shape[0]} * x.shape[1];
    return
        [=](DecisionFrame& f) { f.kernels->channels_first(f.registers + from, pixels, channels, f.registers + out); };
}

Step compile_flatten(OpReader& op) {
    op.expect(1, 0);
    const Register x = op.raw(0);
    op.alias(x, {static_cast<std::uint32_t>(x.values)});
    return {};
}

Step compile_concat(OpReader& op) {
    op.expect(op.op().inputs.size(), 0);
    struct Part {
        std::size_t from, values;
    };
    std::vector<Part> parts;
    std::uint64_t total = 0;
    for (std::size_t index = 0; index < op.op().inputs.size(); ++index) {
        const Register x = op.vector(index);
        parts.push_back({x.at, x.values});
        total += x.values;
        if (total > most_register_values) op.fail("joins more values than a register can have");
    }
    if (parts.empty()) op.fail("joins nothing; expected two inputs or more");
    const std::size_t out = op.output({static_cast<std::uint32_t>(total)});
    return [parts = std::move(parts), out](DecisionFrame& f) {
        float* to = f.registers + out;
        for (const Part& part : parts) {
            std::memcpy(to, f.registers + part.from, part.values * sizeof(float));
            to += part.values;
        }
    };
}

/// Places of a recurrent op: both products are made first, then the gates.
struct Recurrent {
    std::size_t x, inputs, hidden, size, gates;
    std::size_t input_weight, hidden_weight, input_bias, hidden_bias;
    std::size_t from_input, from_hidden;

    void multiply(DecisionFrame& f) const {
        f.kernels->linear(f.registers + x, inputs, f.weights + input_weight, f.weights + input_bias,
                          f.registers + from_input, gates * size);
        f.kernels->linear(f.registers + hidden, size, f.weights + hidden_weight, f.weights + hidden_bias,
                          f.registers + from_hidden, gates * size);
    }

    void multiply(DecisionFrame* f, std::size_t count) const {
        const std::size_t stride = row_stride(f, count);
        f->kernels->linear_rows(f->registers + x, stride, count, inputs, f->weights + input_weight,
                                f->weights + input_bias, f->registers + from_input, stride, gates * size);
        f->kernels->linear_rows(f->registers + hidden, stride, count, size, f->weights + hidden_weight,
                                f->weights + hidden_bias, f->registers + from_hidden, stride, gates * size);
    }

    /// Both products, then `gates_of` each row.
    template <typename Gates>
    Step step(Gates gates_of) const {
        const auto one_row = [r = *this, gates_of](DecisionFrame& f) {
            r.multiply(f);
            gates_of(f);
        };
        const auto rows = [r = *this, gates_of](DecisionFrame* f, std::size_t count) {
            r.multiply(f, count);
            for (std::size_t row = 0; row < count; ++row) gates_of(f[row]);
        };
        return {one_row, rows};
    }
};

Recurrent read_recurrent(OpReader& op, std::uint32_t gates) {
    const Register x = op.vector(0), hidden = op.vector(1);
    const std::uint64_t width = std::uint64_t{gates} * hidden.values;
    if (width > most_register_values) op.fail("has a memory of " + std::to_string(hidden.values) + " values");
    const auto columns = static_cast<std::uint32_t>(width);
    Recurrent r{};
    r.x = x.at, r.inputs = x.values, r.hidden = hidden.at, r.size = hidden.values, r.gates = gates;
    r.input_weight = op.tensor(0, {x.shape[0], columns}), r.hidden_weight = op.tensor(1, {hidden.shape[0], columns});
    r.input_bias = op.tensor(2, {columns}), r.hidden_bias = op.tensor(3, {columns});
    r.from_input = op.scratch(columns), r.from_hidden = op.scratch(columns);
    return r;
}

Step compile_gru(OpReader& op) {
    op.expect(2, 4);
    const Recurrent r = read_recurrent(op, 3);
    const std::size_t out = op.output({static_cast<std::uint32_t>(r.size)});
    return r.step([=](DecisionFrame& f) {
        f.kernels->gru(f.registers + r.from_input, f.registers + r.from_hidden, f.registers + r.hidden,
                       f.registers + out, r.size);
    });
}

Step compile_lstm(OpReader& op) {
    op.expect(3, 4, 2);
    const Recurrent r = read_recurrent(op, 4);
    const Register cell = op.vector(2);
    if (cell.values != r.size) op.fail("has a hidden memory and a cell of different lengths");
    const Shape shape = cell.shape;
    const std::size_t next_hidden = op.output(shape, 0), next_cell = op.output(shape, 1), from = cell.at;
    return r.step([=](DecisionFrame& f) {
        f.kernels->lstm(f.registers + r.from_input, f.registers + r.from_hidden, f.registers + from,
                        f.registers + next_hidden, f.registers + next_cell, r.size);
    });
}

Step compile_embed(OpReader& op) {
    op.expect(1, 1);
    const Register indices = op.raw(0);
    const Shape table = op.tensor_shape(0, 2);
    const std::uint64_t total = static_cast<std::uint64_t>(indices.values) * table[1];
    if (total > most_register_values) op.fail("looks up more values than a register can have");
    const std::size_t weight = op.tensor(0, table), out = op.output({static_cast<std::uint32_t>(total)});
    const std::size_t rows = table[0], width = table[1], count = indices.values;
    return [=](DecisionFrame& f) {
        for (std::size_t i = 0; i < count; ++i) {
            // Integers are read as integers: float32 has only 24 bits.
            const std::int64_t index = indices.input ? index_at(f.observation[*indices.input], indices.type, i)
                                                     : whole_part(f.registers[indices.at + i]);
            float* to = f.registers + out + i * width;
            if (index < 0 || static_cast<std::uint64_t>(index) >= rows) {
                f.outcome = Outcome::IndexOutOfRange;
                std::memset(to, 0, width * sizeof(float));
                continue;
            }
            std::memcpy(to, f.weights + weight + static_cast<std::size_t>(index) * width, width * sizeof(float));
        }
    };
}

using Compile = Step (*)(OpReader&);

const std::map<std::string, Compile>& compilers() {
    static const std::map<std::string, Compile> table{
        {"linear", compile_linear},
        {"tanh", compile_elementwise<&Kernels::tanh>},
        {"relu", compile_elementwise<&Kernels::relu>},
        {"sigmoid", compile_elementwise<&Kernels::sigmoid>},
        {"silu", compile_elementwise<&Kernels::silu>},
        {"gelu", compile_elementwise<&Kernels::gelu>},
        {"elu", compile_elementwise<&Kernels::elu>},
        {"softplus", compile_elementwise<&Kernels::softplus>},
        {"leaky_relu", compile_leaky_relu},
        {"standardize", compile_standardize},
        {"layer_norm", compile_layer_norm},
        {"rms_norm", compile_rms_norm},
        {"channels_first", compile_channels_first},
        {"conv2d", compile_conv2d},
        {"flatten", compile_flatten},
        {"concat", compile_concat},
        {"add", compile_add},
        {"scale", compile_scale},
        {"gru", compile_gru},
        {"lstm", compile_lstm},
        {"embed", compile_embed},
        {"multiply", compile_multiply},
        {"symlog", compile_symlog},
        {"log", compile_log},
        {"softmax", compile_softmax},
        {"grouped_linear", compile_grouped_linear},
        {"gate", compile_gate},
        {"latent", compile_latent},
        {"attention", compile_attention},
        {"candidate_linear", compile_candidate_linear},
        {"candidate_pool", compile_candidate_pool},
        {"conv1d", compile_conv1d},
        {"max_pool1d", compile_max_pool1d},
        {"max_pool2d", compile_max_pool2d},
        {"average_pool1d", compile_average_pool1d},
        {"average_pool2d", compile_average_pool2d},
        {"slice", compile_slice},
        {"reshape", compile_reshape},
    };
    return table;
}

}  // namespace

bool knows_op(const std::string& kind) {
    return compilers().count(kind) != 0;
}

Step compile_op(Compiler& compiler, const Op& op, const std::string& who) {
    OpReader reader(compiler, op, who);
    return compilers().at(op.kind)(reader);
}

}  // namespace rl4sys::detail

namespace rl4sys {

const std::vector<std::string>& known_ops() {
    static const std::vector<std::string> names = [] {
        std::vector<std::string> all;
        for (const auto& entry : detail::compilers()) all.push_back(entry.first);
        return all;
    }();
    return names;
}

}  // namespace rl4sys
