/// @file
/// The arithmetic of the ops, compiled once for every machine, and for those with AVX2 and FMA and with AVX-512.
#pragma once

#include <cstddef>

namespace rl4sys::detail {

/// From `count` values to as many; `from` and `to` are the same or do not overlap.
using Elementwise = void (*)(const float* from, float* to, std::size_t count);

/// One implementation of all kernels. Arrays are float32, need no alignment, and results overlap no argument
/// unless said otherwise.
struct Kernels {
    const char* name;
    /// result[j] = bias[j] + sum over i of x[i] * weight[i * outputs + j]; `bias` may be null.
    void (*linear)(const float* x, std::size_t inputs, const float* weight, const float* bias, float* result,
                   std::size_t outputs);
    /// The same for `rows` rows of x and of results, each a stride after the one before. The bits are those of
    /// `linear`.
    void (*linear_rows)(const float* x, std::size_t x_stride, std::size_t rows, std::size_t inputs, const float* weight,
                        const float* bias, float* result, std::size_t result_stride, std::size_t outputs);
    /// result[f * stride + p] = bias[f] + sum over i of panel[p * inputs + i] * filters[f * inputs + i], for
    /// `positions` rows of the panel and `count` filters.
    void (*dot_panel)(const float* panel, std::size_t positions, std::size_t inputs, const float* filters,
                      const float* bias, float* result, std::size_t stride, std::size_t count);
    Elementwise tanh;
    Elementwise relu;
    Elementwise sigmoid;
    Elementwise silu;
    Elementwise gelu;
    Elementwise elu;
    Elementwise softplus;
    void (*leaky_relu)(const float* x, float slope, float* result, std::size_t count);
    void (*scale)(const float* x, float factor, float offset, float* result, std::size_t count);
    void (*add)(const float* first, const float* second, float* result, std::size_t count);
    void (*standardize)(const float* x, const float* mean, const float* scale, float clip, float* result,
                        std::size_t count);
    /// Over one axis of `count` values.
    void (*layer_norm)(const float* x, const float* gain, const float* bias, float epsilon, float* result,
                       std::size_t count);
    void (*rms_norm)(const float* x, const float* gain, float epsilon, float* result, std::size_t count);
    /// The gates after both products (3 * size values each), in the order reset, update, new.
    void (*gru)(const float* from_input, const float* from_hidden, const float* hidden, float* next, std::size_t size);
    /// The gates after both products (4 * size values each), in the order input, forget, cell, output.
    void (*lstm)(const float* from_input, const float* from_hidden, const float* cell, float* next_hidden,
                 float* next_cell, std::size_t size);
    void (*from_bytes)(const unsigned char* from, float* to, std::size_t count);
    /// From [pixels, channels] to [channels, pixels].
    void (*channels_first)(const float* from, std::size_t pixels, std::size_t channels, float* to);
};

/// For every machine.
const Kernels& baseline_kernels() noexcept;

/// For machines with AVX2 and FMA; null where this one, or this build, lacks them.
const Kernels* avx2_kernels() noexcept;

/// For machines with AVX-512 that gain from it; null where this one does not, or this build lacks it.
const Kernels* avx512_kernels() noexcept;

/// The fastest that this machine can run.
const Kernels& best_kernels() noexcept;

}  // namespace rl4sys::detail
