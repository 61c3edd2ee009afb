#include <cmath>
#include <cstring>
#include <limits>

#include "policy/elements.hpp"
#include "policy/op_compilers.hpp"

namespace rl4sys::detail {
namespace {

/// Lengths and places of one attention over a ring of keys and values.
struct Attention {
    std::size_t heads, window, size, width;
    std::size_t query, key, value, keys, values, count;
    std::size_t result, next_keys, next_values, next_count;
    std::size_t bias, weights;
};

/// Writes key and value over the oldest row of the ring; returns its place.
std::size_t write_row(const Attention& a, DecisionFrame& f, std::size_t before) {
    const std::size_t slot = before % a.window, bytes = a.window * a.size * sizeof(float);
    std::memcpy(f.registers + a.next_keys, f.registers + a.keys, bytes);
    std::memcpy(f.registers + a.next_values, f.registers + a.values, bytes);
    const std::size_t row = a.size * sizeof(float);
    std::memcpy(f.registers + a.next_keys + slot * a.size, f.registers + a.key, row);
    std::memcpy(f.registers + a.next_values + slot * a.size, f.registers + a.value, row);
    return slot;
}

/// Looks at all rows that were ever written, with one head.
void look(const Attention& a, DecisionFrame& f, std::size_t head, std::size_t slot, std::size_t before) {
    const float* query = f.registers + a.query + head * a.width;
    const float* bias = f.weights + a.bias + head * a.window;
    const float share = static_cast<float>(1.0 / std::sqrt(static_cast<double>(a.width)));
    float *weights = f.registers + a.weights, *result = f.registers + a.result + head * a.width;
    float peak = -std::numeric_limits<float>::infinity(), sum = 0.0F;
    const std::size_t written = before < a.window ? before + 1 : a.window;
    for (std::size_t age = 0; age < written; ++age) {
        const std::size_t place = (slot + a.window - age) % a.window;
        const float* key = f.registers + a.next_keys + place * a.size + head * a.width;
        float product = 0.0F;
        for (std::size_t i = 0; i < a.width; ++i) product += query[i] * key[i];
        weights[age] = product * share + bias[age];
        if (!(weights[age] <= peak)) peak = weights[age];
    }
    for (std::size_t age = 0; age < written; ++age) {
        weights[age] = std::exp(weights[age] - peak);
        sum += weights[age];
    }
    for (std::size_t i = 0; i < a.width; ++i) result[i] = 0.0F;
    for (std::size_t age = 0; age < written; ++age) {
        const std::size_t place = (slot + a.window - age) % a.window;
        const float* value = f.registers + a.next_values + place * a.size + head * a.width;
        const float weight = weights[age] / sum;
        for (std::size_t i = 0; i < a.width; ++i) result[i] += weight * value[i];
    }
}

void attend(const Attention& a, DecisionFrame& f) {
    const auto limit = static_cast<std::int64_t>(2 * a.window);
    const std::int64_t whole = whole_part(static_cast<double>(f.registers[a.count]));
    // Only a damaged carry has another count; it must not lead outside of the ring.
    const auto before = static_cast<std::size_t>(whole < 0 || whole >= limit ? 0 : whole);
    const std::size_t slot = write_row(a, f, before);
    for (std::size_t head = 0; head < a.heads; ++head) look(a, f, head, slot, before);
    const std::size_t following = before + 1 >= 2 * a.window ? before + 1 - a.window : before + 1;
    f.registers[a.next_count] = static_cast<float>(following);
}

}  // namespace

Step compile_attention(OpReader& op) {
    op.expect(6, 1, 4);
    const Register query = op.vector(0), key = op.vector(1), value = op.vector(2);
    const Register keys = op.floats(3), values = op.floats(4), count = op.vector(5);
    Attention a{};
    a.size = query.values;
    const bool is_ring = keys.shape.size() == 2 && keys.shape == values.shape && keys.shape[0] > 0;
    if (!is_ring || keys.shape[1] != a.size || key.values != a.size || value.values != a.size || count.values != 1) {
        op.fail("reads shapes " + to_string(query.shape) + ", " + to_string(key.shape) + ", " + to_string(value.shape) +
                ", " + to_string(keys.shape) + ", " + to_string(values.shape) + " and " + to_string(count.shape) +
                "; expected query, key and value [d], keys and values [window, d], and count [1]");
    }
    a.heads = op.parts("heads", a.size), a.window = keys.shape[0], a.width = a.size / a.heads;
    a.bias = op.tensor(0, {static_cast<std::uint32_t>(a.heads), keys.shape[0]});
    a.query = query.at, a.key = key.at, a.value = value.at;
    a.keys = keys.at, a.values = values.at, a.count = count.at;
    a.result = op.output(query.shape, 0), a.next_keys = op.output(keys.shape, 1);
    a.next_values = op.output(keys.shape, 2), a.next_count = op.output({1}, 3);
    a.weights = op.scratch(a.window);
    return [a](DecisionFrame& f) { attend(a, f); };
}

}  // namespace rl4sys::detail
