#include "policy/compiler.hpp"

#include <cmath>
#include <utility>

namespace rl4sys::detail {

void refuse(const std::string& who, const std::string& problem) {
    throw BadPolicy("The policy cannot be run: " + who + " " + problem +
                    ". Compare the versions of client and server, and report it.");
}

double number(const Settings& settings, const std::string& name, const std::string& owner) {
    const auto found = settings.find(name);
    if (found == settings.end()) refuse(owner, "lacks the setting '" + name + "'");
    double value = NAN;
    if (const auto* real = std::get_if<double>(&found->second)) value = *real;
    if (const auto* whole = std::get_if<std::int64_t>(&found->second)) value = static_cast<double>(*whole);
    if (!std::isfinite(value)) refuse(owner, "has a setting '" + name + "' that is not a finite number");
    return value;
}

Compiler::Compiler(const PolicySpec& spec, const Layout& layout)
    : spec_(spec), layout_(layout), read_as_floats_(spec.program.inputs.size(), false) {
    for (std::size_t index = 0; index < spec.program.inputs.size(); ++index) {
        const ArraySpec& input = spec.program.inputs[index];
        if (element_size(input.type) == 0) refuse("the input '" + input.name + "'", "has an unknown element type");
        const std::size_t values = value_count(input.shape);
        insert(input.name, {input.shape, values, scratch(values), input.type, index});
    }
    for (const Memory& memory : spec.program.carry) assign(memory.name, memory.shape);
}

const Register& Compiler::find(const std::string& name, const std::string& reader) const {
    const auto found = registers_.find(name);
    if (found == registers_.end()) {
        refuse(reader, "reads the register '" + name + "', which does not exist by then");
    }
    return found->second;
}

const Register& Compiler::floats(const std::string& name, const std::string& reader) {
    const Register& value = find(name, reader);
    if (value.input) read_as_floats_[*value.input] = true;
    return value;
}

const Register& Compiler::assign(const std::string& name, Shape shape) {
    const std::size_t values = value_count(shape);
    insert(name, {std::move(shape), values, scratch(values), ElementType::Float32, std::nullopt});
    return registers_.at(name);
}

void Compiler::alias(const std::string& name, const Register& original, Shape shape) {
    Register copy = original;
    copy.shape = std::move(shape);
    insert(name, std::move(copy));
}

std::size_t Compiler::scratch(std::size_t values) {
    // Rounded up to whole cache lines, so that registers share none.
    constexpr std::size_t line = 16;
    const std::size_t at = end_;
    if (values > most_register_values || at > most_register_values - values) {
        refuse("its program", "needs more than " + std::to_string(most_register_values) + " values at once");
    }
    end_ += (values + line - 1) / line * line;
    return at;
}

std::size_t Compiler::tensor(const std::string& name, const Shape& shape, const std::string& reader) const {
    const Shape& found = tensor_shape(name, reader);
    if (found != shape) {
        refuse(reader,
               "needs its tensor '" + name + "' in the shape " + to_string(shape) + ", but it has " + to_string(found));
    }
    return layout_.offset(name);
}

const Shape& Compiler::tensor_shape(const std::string& name, const std::string& reader) const {
    try {
        return layout_.shape(name);
    } catch (const LayoutMismatch&) {
        refuse(reader, "reads the tensor '" + name + "', which does not exist");
    }
}

void Compiler::insert(const std::string& name, Register value) {
    if (name.empty() || !registers_.emplace(name, std::move(value)).second) {
        refuse("the register '" + name + "'", "is assigned twice or has no name");
    }
}

}  // namespace rl4sys::detail
