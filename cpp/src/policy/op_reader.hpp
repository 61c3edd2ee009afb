/// @file
/// Reads the parts of an op, with checks that all ops share.
#pragma once

#include <cmath>
#include <string>
#include <utility>

#include "policy/compiler.hpp"

namespace rl4sys::detail {

/// Reads the registers and tensors of an op, with checks.
class OpReader {
public:
    OpReader(Compiler& compiler, const Op& op, std::string who) : compiler_(compiler), op_(op), who_(std::move(who)) {}

    /// Refuses the op unless it has as many parts as its kind needs.
    void expect(std::size_t inputs, std::size_t tensors, std::size_t outputs = 1) const {
        if (op_.inputs.size() == inputs && op_.tensors.size() == tensors && op_.outputs.size() == outputs) return;
        fail("has " + std::to_string(op_.inputs.size()) + " inputs, " + std::to_string(op_.tensors.size()) +
             " tensors and " + std::to_string(op_.outputs.size()) + " outputs; expected " + std::to_string(inputs) +
             ", " + std::to_string(tensors) + " and " + std::to_string(outputs));
    }
    /// A copy: later assignments do not change it.
    Register floats(std::size_t index) { return compiler_.floats(op_.inputs[index], who_); }
    Register vector(std::size_t index) {
        const Register x = floats(index);
        require_axes(x.shape, 1, op_.inputs[index]);
        return x;
    }
    Register image(std::size_t index) {
        const Register x = floats(index);
        require_axes(x.shape, 3, op_.inputs[index]);
        return x;
    }
    Register raw(std::size_t index) const { return compiler_.find(op_.inputs[index], who_); }
    std::size_t tensor(std::size_t index, const Shape& shape) const {
        return compiler_.tensor(op_.tensors[index], shape, who_);
    }
    const Shape& tensor_shape(std::size_t index, std::size_t axes) const {
        const Shape& shape = compiler_.tensor_shape(op_.tensors[index], who_);
        require_axes(shape, axes, op_.tensors[index]);
        return shape;
    }
    std::size_t output(Shape shape, std::size_t index = 0) {
        return compiler_.assign(op_.outputs[index], std::move(shape)).at;
    }
    void alias(const Register& x, Shape shape) { compiler_.alias(op_.outputs[0], x, std::move(shape)); }
    std::size_t scratch(std::size_t values) { return compiler_.scratch(values); }
    float real(const char* name) const { return static_cast<float>(number(op_.settings, name, who_)); }
    std::size_t whole(const char* name, std::size_t least) const {
        const double value = number(op_.settings, name, who_);
        if (value != std::trunc(value) || value < static_cast<double>(least) || value > 65536.0) {
            fail("has the setting " + std::string(name) + " = " + std::to_string(value) +
                 "; expected a whole number from " + std::to_string(least) + " to 65536");
        }
        return static_cast<std::size_t>(value);
    }
    double number_of(const char* name) const { return number(op_.settings, name, who_); }
    /// A setting that says into how many equal parts a vector of this size is split.
    std::size_t parts(const char* name, std::size_t size) const {
        const std::size_t count = whole(name, 1);
        if (size == 0 || size % count != 0) {
            fail("splits " + std::to_string(size) + " values into " + std::to_string(count) +
                 " equal parts; expected a number that divides them");
        }
        return count;
    }
    bool truth(const char* name) const {
        const auto found = op_.settings.find(name);
        const auto* value = found == op_.settings.end() ? nullptr : std::get_if<bool>(&found->second);
        if (value == nullptr) fail("lacks the setting '" + std::string(name) + "', which is true or false");
        return *value;
    }
    const Op& op() const { return op_; }
    [[noreturn]] void fail(const std::string& problem) const { refuse(who_, problem); }

private:
    void require_axes(const Shape& shape, std::size_t axes, const std::string& name) const {
        if (shape.size() == axes) return;
        fail("reads '" + name + "' of shape " + to_string(shape) + "; expected " + std::to_string(axes) +
             (axes == 1 ? " axis" : " axes"));
    }

    Compiler& compiler_;
    const Op& op_;
    std::string who_;
};

}  // namespace rl4sys::detail
