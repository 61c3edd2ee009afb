#include <cstring>

#include "policy/op_compilers.hpp"

namespace rl4sys::detail {
namespace {

/// Lengths and places of one convolution.
struct Convolution {
    std::size_t channels, height, width;
    std::size_t tall, wide;
    std::size_t stride, padding;
    std::size_t filters, rows, columns;
    std::size_t from, padded, window, out, kernel, bias;

    std::size_t padded_height() const { return height + 2 * padding; }
    std::size_t padded_width() const { return width + 2 * padding; }
    std::size_t window_values() const { return channels * tall * wide; }
};

void convolve(const Convolution& c, DecisionFrame& f) {
    // The border of `padded` is zero from the start and stays so.
    for (std::size_t row = 0; row < c.channels * c.height; ++row) {
        const std::size_t channel = row / c.height, y = row % c.height;
        const std::size_t at = (channel * c.padded_height() + y + c.padding) * c.padded_width() + c.padding;
        std::memcpy(f.registers + c.padded + at, f.registers + c.from + row * c.width, c.width * sizeof(float));
    }
    const std::size_t positions = c.rows * c.columns;
    for (std::size_t position = 0; position < positions; ++position) {
        const std::size_t top = position / c.columns * c.stride, left = position % c.columns * c.stride;
        float* window = f.registers + c.window;
        for (std::size_t channel = 0; channel < c.channels; ++channel) {
            for (std::size_t y = 0; y < c.tall; ++y, window += c.wide) {
                const std::size_t at = (channel * c.padded_height() + top + y) * c.padded_width() + left;
                std::memcpy(window, f.registers + c.padded + at, c.wide * sizeof(float));
            }
        }
        f.kernels->dot_rows(f.registers + c.window, c.window_values(), f.weights + c.kernel, f.weights + c.bias,
                            f.registers + c.out + position, positions, c.filters);
    }
}

}  // namespace

Step compile_conv2d(OpReader& op) {
    op.expect(1, 2);
    const Register x = op.image(0);
    const Shape kernel = op.tensor_shape(0, 4);
    Convolution c{};
    c.channels = x.shape[0], c.height = x.shape[1], c.width = x.shape[2];
    c.filters = kernel[0], c.tall = kernel[2], c.wide = kernel[3];
    c.stride = op.whole("stride", 1), c.padding = op.whole("padding", 0);
    if (kernel[1] != x.shape[0]) {
        op.fail("has a kernel for " + std::to_string(kernel[1]) + " channels, but its image has " +
                std::to_string(x.shape[0]));
    }
    if (c.tall == 0 || c.wide == 0 || c.tall > c.padded_height() || c.wide > c.padded_width()) {
        op.fail("has a kernel of shape " + to_string(kernel) + ", which does not fit into its image of shape " +
                to_string(x.shape) + " with padding " + std::to_string(c.padding));
    }
    c.rows = (c.padded_height() - c.tall) / c.stride + 1;
    c.columns = (c.padded_width() - c.wide) / c.stride + 1;
    c.kernel = op.tensor(0, kernel), c.bias = op.tensor(1, {kernel[0]});
    const Shape padded{x.shape[0], static_cast<std::uint32_t>(c.padded_height()),
                       static_cast<std::uint32_t>(c.padded_width())};
    c.from = x.at, c.padded = op.scratch(value_count(padded)), c.window = op.scratch(c.window_values());
    c.out = op.output({kernel[0], static_cast<std::uint32_t>(c.rows), static_cast<std::uint32_t>(c.columns)});
    return [c](DecisionFrame& f) { convolve(c, f); };
}

}  // namespace rl4sys::detail
