#include <cstring>

#include "policy/op_compilers.hpp"

namespace rl4sys::detail {

Step compile_slice(OpReader& op) {
    op.expect(1, 0);
    const Register x = op.floats(0);
    const std::size_t axis = op.whole("axis", 0), start = op.whole("start", 0), stop = op.whole("stop", 1);
    if (axis >= x.shape.size() || start >= stop || stop > x.shape[axis]) {
        op.fail("takes " + std::to_string(start) + " to " + std::to_string(stop) + " of axis " + std::to_string(axis) +
                "; it reads shape " + to_string(x.shape));
    }
    Shape shape = x.shape;
    shape[axis] = static_cast<std::uint32_t>(stop - start);
    std::size_t outer = 1, inner = 1;
    for (std::size_t i = 0; i < axis; ++i) outer *= x.shape[i];
    for (std::size_t i = axis + 1; i < x.shape.size(); ++i) inner *= x.shape[i];
    const std::size_t from = x.at + start * inner, pitch = x.shape[axis] * inner, taken = (stop - start) * inner;
    const std::size_t out = op.output(shape);
    return [=](DecisionFrame& f) {
        for (std::size_t part = 0; part < outer; ++part) {
            std::memcpy(f.registers + out + part * taken, f.registers + from + part * pitch, taken * sizeof(float));
        }
    };
}

Step compile_reshape(OpReader& op) {
    op.expect(1, 0);
    const Register x = op.raw(0);
    const auto found = op.op().settings.find("lengths");
    const auto* lengths =
        found == op.op().settings.end() ? nullptr : std::get_if<std::vector<std::int64_t>>(&found->second);
    if (lengths == nullptr || lengths->empty())
        op.fail("lacks the setting 'lengths', which lists whole numbers from 1");
    Shape shape;
    std::uint64_t values = 1;
    for (const std::int64_t length : *lengths) {
        if (length < 1 || static_cast<std::uint64_t>(length) > most_register_values) {
            op.fail("has an axis of length " + std::to_string(length) +
                    " in its setting 'lengths'; expected 1 or more");
        }
        shape.push_back(static_cast<std::uint32_t>(length));
        values *= static_cast<std::uint64_t>(length);
        if (values > most_register_values) op.fail("makes more values than a register can have");
    }
    if (values != x.values) {
        op.fail("makes shape " + to_string(shape) + " of " + to_string(x.shape) + "; expected as many values");
    }
    op.alias(x, shape);
    return {};
}

}  // namespace rl4sys::detail
