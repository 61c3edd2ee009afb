#include <algorithm>
#include <cstring>
#include <limits>

#include "policy/op_compilers.hpp"

namespace rl4sys::detail {
namespace {

/// One axis of windows: `count` of them, `stride` apart, over `length` values with `padding` on both sides.
struct Axis {
    std::size_t length, kernel, stride, padding, count;
};

Axis read_axis(const OpReader& op, std::size_t length, std::size_t kernel) {
    Axis axis{length, kernel, op.whole("stride", 1), op.whole("padding", 0), 0};
    const std::size_t padded = length + 2 * axis.padding;
    if (kernel == 0 || kernel > padded) {
        op.fail("has windows of " + std::to_string(kernel) + " values, which do not fit into " +
                std::to_string(length) + " with padding " + std::to_string(axis.padding));
    }
    axis.count = (padded - kernel) / axis.stride + 1;
    return axis;
}

/// The part of window `number` that is not padding: values `first` to before `last`.
struct Span {
    std::size_t first, last;
};

Span span(const Axis& axis, std::size_t number) {
    const std::size_t begin = number * axis.stride, end = begin + axis.kernel;
    return {begin > axis.padding ? begin - axis.padding : 0,
            end > axis.padding ? std::min(end - axis.padding, axis.length) : 0};
}

/// Pooling over images [channels, height, width]; a sequence is an image of one row.
struct Pooling {
    std::size_t channels;
    Axis rows, columns;
    std::size_t from, out;

    template <class Reduce>
    void run(DecisionFrame& f, const Reduce& reduce) const {
        float* to = f.registers + out;
        for (std::size_t channel = 0; channel < channels; ++channel) {
            const float* image = f.registers + from + channel * rows.length * columns.length;
            for (std::size_t row = 0; row < rows.count; ++row) {
                for (std::size_t column = 0; column < columns.count; ++column) {
                    *to++ = reduce(image, columns.length, span(rows, row), span(columns, column));
                }
            }
        }
    }
};

Pooling read_pooling(OpReader& op, std::size_t axes) {
    op.expect(1, 0);
    const Register x = op.floats(0);
    if (x.shape.size() != axes + 1) {
        op.fail("reads '" + op.op().inputs[0] + "' of shape " + to_string(x.shape) + "; expected channels and " +
                std::to_string(axes) + (axes == 1 ? " more axis" : " more axes"));
    }
    const std::size_t kernel = op.whole("kernel", 1);
    Pooling pooling{};
    pooling.channels = x.shape[0], pooling.from = x.at;
    pooling.rows = axes == 2 ? read_axis(op, x.shape[1], kernel) : Axis{1, 1, 1, 0, 1};
    pooling.columns = read_axis(op, x.shape.back(), kernel);
    if (2 * pooling.columns.padding > kernel) {
        op.fail("has padding " + std::to_string(pooling.columns.padding) + "; expected at most half of its kernel, " +
                std::to_string(kernel));
    }
    Shape shape{x.shape[0]};
    if (axes == 2) shape.push_back(static_cast<std::uint32_t>(pooling.rows.count));
    shape.push_back(static_cast<std::uint32_t>(pooling.columns.count));
    pooling.out = op.output(shape);
    return pooling;
}

float highest(const float* image, std::size_t width, Span rows, Span columns) {
    float best = -std::numeric_limits<float>::infinity();
    for (std::size_t row = rows.first; row < rows.last; ++row) {
        for (std::size_t column = columns.first; column < columns.last; ++column) {
            const float value = image[row * width + column];
            // Not std::max: a NaN must stay.
            if (!(value <= best)) best = value;
        }
    }
    return best;
}

float sum(const float* image, std::size_t width, Span rows, Span columns) {
    float total = 0.0F;
    for (std::size_t row = rows.first; row < rows.last; ++row) {
        for (std::size_t column = columns.first; column < columns.last; ++column) total += image[row * width + column];
    }
    return total;
}

Step max_pool(OpReader& op, std::size_t axes) {
    const Pooling pooling = read_pooling(op, axes);
    return [pooling](DecisionFrame& f) { pooling.run(f, highest); };
}

Step average_pool(OpReader& op, std::size_t axes) {
    const Pooling pooling = read_pooling(op, axes);
    const float share = 1.0F / static_cast<float>(pooling.rows.kernel * pooling.columns.kernel);
    return [pooling, share](DecisionFrame& f) {
        pooling.run(f, [share](const float* image, std::size_t width, Span rows, Span columns) {
            return sum(image, width, rows, columns) * share;
        });
    };
}

}  // namespace

Step compile_max_pool1d(OpReader& op) {
    return max_pool(op, 1);
}

Step compile_max_pool2d(OpReader& op) {
    return max_pool(op, 2);
}

Step compile_average_pool1d(OpReader& op) {
    return average_pool(op, 1);
}

Step compile_average_pool2d(OpReader& op) {
    return average_pool(op, 2);
}

Step compile_conv1d(OpReader& op) {
    op.expect(1, 2);
    const Register x = op.floats(0);
    const Shape kernel = op.tensor_shape(0, 3);
    if (x.shape.size() != 2 || x.shape[0] != kernel[1]) {
        op.fail("reads '" + op.op().inputs[0] + "' of shape " + to_string(x.shape) + " with a kernel of shape " +
                to_string(kernel) + "; expected as many channels and a length");
    }
    const std::size_t channels = kernel[1], filters = kernel[0];
    const Axis axis = read_axis(op, x.shape[1], kernel[2]);
    const std::size_t weight = op.tensor(0, kernel), bias = op.tensor(1, {kernel[0]});
    const std::size_t values = channels * axis.kernel, from = x.at;
    // Several windows at once, so that each filter that is read serves all of them.
    constexpr std::size_t at_once = 4;
    const std::size_t panel = op.scratch(at_once * values);
    const std::size_t out = op.output({kernel[0], static_cast<std::uint32_t>(axis.count)});
    const auto copy_window = [=](DecisionFrame& f, std::size_t position, float* window) {
        const Span part = span(axis, position);
        const std::size_t begin = position * axis.stride;
        const std::size_t before = begin < axis.padding ? std::min(axis.padding - begin, axis.kernel) : 0;
        std::memset(window, 0, values * sizeof(float));
        for (std::size_t channel = 0; channel < channels && part.first < part.last; ++channel) {
            std::memcpy(window + channel * axis.kernel + before,
                        f.registers + from + channel * axis.length + part.first,
                        (part.last - part.first) * sizeof(float));
        }
    };
    return [=](DecisionFrame& f) {
        for (std::size_t first = 0; first < axis.count; first += at_once) {
            const std::size_t count = std::min(at_once, axis.count - first);
            for (std::size_t k = 0; k < count; ++k) copy_window(f, first + k, f.registers + panel + k * values);
            f.kernels->dot_panel(f.registers + panel, count, values, f.weights + weight, f.weights + bias,
                                 f.registers + out + first, axis.count, filters);
        }
    };
}

}  // namespace rl4sys::detail
