#include <algorithm>
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
    std::size_t from, padded, panel, out, kernel, bias;

    std::size_t padded_height() const { return height + 2 * padding; }
    std::size_t padded_width() const { return width + 2 * padding; }
    std::size_t window_values() const { return channels * tall * wide; }
    std::size_t positions() const { return rows * columns; }
    /// How many windows are multiplied with all filters at once: about as many as the nearest cache holds.
    std::size_t panel_rows() const {
        constexpr std::size_t near_values = 4096, least = 4;
        const std::size_t fitting = near_values / std::max<std::size_t>(1, window_values());
        return std::min(positions(), std::max(least, fitting / least * least));
    }
};

/// Copies the image between borders, which are zero from the start and stay so.
void pad(const Convolution& c, const float* from, float* to) {
    for (std::size_t row = 0; row < c.channels * c.height; ++row) {
        const std::size_t channel = row / c.height, y = row % c.height;
        const std::size_t at = (channel * c.padded_height() + y + c.padding) * c.padded_width() + c.padding;
        std::memcpy(to + at, from + row * c.width, c.width * sizeof(float));
    }
}

/// Copies the windows of `count` positions from `first` on, each into a row of the panel. `Wide` is the width of the
/// kernel, or 0 for any: a width that the compiler knows takes one instruction instead of a call.
template <std::size_t Wide>
void copy_windows(const Convolution& c, const float* image, std::size_t first, std::size_t count, float* panel) {
    const std::size_t wide = Wide == 0 ? c.wide : Wide;
    const std::size_t line = c.padded_width(), channel = c.padded_height() * line;
    for (std::size_t position = first; position < first + count; ++position) {
        const float* window = image + position / c.columns * c.stride * line + position % c.columns * c.stride;
        for (std::size_t k = 0; k < c.channels; ++k) {
            for (std::size_t y = 0; y < c.tall; ++y, panel += wide) {
                std::memcpy(panel, window + k * channel + y * line, wide * sizeof(float));
            }
        }
    }
}

template <std::size_t Wide>
void convolve(const Convolution& c, DecisionFrame& f) {
    const float* image = f.registers + c.from;
    if (c.padding > 0) {
        pad(c, image, f.registers + c.padded);
        image = f.registers + c.padded;
    }
    const std::size_t positions = c.positions(), at_once = c.panel_rows();
    for (std::size_t position = 0; position < positions; position += at_once) {
        const std::size_t count = std::min(at_once, positions - position);
        copy_windows<Wide>(c, image, position, count, f.registers + c.panel);
        f.kernels->dot_panel(f.registers + c.panel, count, c.window_values(), f.weights + c.kernel, f.weights + c.bias,
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
    c.from = x.at, c.padded = c.padding == 0 ? 0 : op.scratch(value_count(padded));
    c.panel = op.scratch(c.panel_rows() * c.window_values());
    c.out = op.output({kernel[0], static_cast<std::uint32_t>(c.rows), static_cast<std::uint32_t>(c.columns)});
    switch (c.wide) {
        case 3: return [c](DecisionFrame& f) { convolve<3>(c, f); };
        case 4: return [c](DecisionFrame& f) { convolve<4>(c, f); };
        case 8: return [c](DecisionFrame& f) { convolve<8>(c, f); };
        default: return [c](DecisionFrame& f) { convolve<0>(c, f); };
    }
}

}  // namespace rl4sys::detail
