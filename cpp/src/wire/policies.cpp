#include "wire/policies.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "rl4sys/policy.hpp"

namespace rl4sys::wire {
namespace {

constexpr int most_arrays = 1024;
constexpr int most_parts = 1 << 14;
constexpr std::size_t longest_name = 256;

using Names = google::protobuf::RepeatedPtrField<std::string>;

std::string require_label(const std::string& what, const std::string& name) {
    if (name.empty() || name.size() > longest_name) {
        throw ContractViolation(what + " has the name '" + name.substr(0, 32) + "' of " + std::to_string(name.size()) +
                                " bytes; expected 1 to " + std::to_string(longest_name) + " bytes.");
    }
    return name;
}

void require_few(const std::string& what, int count) {
    if (count > most_parts) {
        throw ContractViolation("A policy has " + std::to_string(count) + " " + what + "; at most " +
                                std::to_string(most_parts) + " can be sent.");
    }
}

Shape decode_shape(const std::string& name, const google::protobuf::RepeatedField<std::uint32_t>& lengths) {
    Shape shape(lengths.begin(), lengths.end());
    try {
        value_count(shape);
    } catch (const std::invalid_argument& error) {
        throw ContractViolation("Array '" + name + "': " + error.what());
    }
    return shape;
}

std::vector<std::string> strings(const Names& names) {
    require_few("names in one list", names.size());
    return {names.begin(), names.end()};
}

Setting decode_setting(const std::string& name, const v1::Setting& message) {
    switch (message.value_case()) {
        case v1::Setting::kReal: return message.real();
        case v1::Setting::kInteger: return std::int64_t{message.integer()};
        case v1::Setting::kText: return message.text();
        case v1::Setting::kTruth: return message.truth();
        case v1::Setting::kIntegers:
            require_few("numbers", message.integers().values_size());
            return std::vector<std::int64_t>(message.integers().values().begin(), message.integers().values().end());
        case v1::Setting::kReals:
            require_few("numbers", message.reals().values_size());
            return std::vector<double>(message.reals().values().begin(), message.reals().values().end());
        case v1::Setting::VALUE_NOT_SET: break;
    }
    throw ContractViolation("Setting '" + name + "' has no value that this version knows. Upgrade the receiver.");
}

Settings decode_settings(const google::protobuf::Map<std::string, v1::Setting>& messages) {
    require_few("settings", static_cast<int>(messages.size()));
    Settings settings;
    for (const auto& [name, message] : messages) {
        const Setting value = decode_setting(name, message);
        const auto* real = std::get_if<double>(&value);
        const auto* reals = std::get_if<std::vector<double>>(&value);
        const auto is_finite = [](double number) { return std::isfinite(number); };
        if ((real != nullptr && !is_finite(*real)) ||
            (reals != nullptr && !std::all_of(reals->begin(), reals->end(), is_finite))) {
            throw ContractViolation("Setting '" + name + "' is not finite; expected finite numbers.");
        }
        settings.emplace(name, value);
    }
    return settings;
}

Chance decode_chance(const v1::Chance& message) {
    if (message.distribution() != v1::DISTRIBUTION_NORMAL && message.distribution() != v1::DISTRIBUTION_UNIFORM) {
        throw ContractViolation("The distribution of '" + message.name().substr(0, 64) + "' has the number " +
                                std::to_string(message.distribution()) +
                                ", which this version does not know. Upgrade the client, or decide on the server.");
    }
    return {require_label("A chance register", message.name()), message.size(),
            static_cast<Distribution>(message.distribution())};
}

Program decode_program(const v1::Program& message) {
    Program program;
    program.inputs = decode_arrays("observation", message.inputs());
    require_few("ops", message.ops_size());
    for (const auto& op : message.ops()) {
        program.ops.push_back({require_label("An op", op.kind()), strings(op.outputs()), strings(op.inputs()),
                               strings(op.tensors()), decode_settings(op.settings())});
    }
    require_few("tensors", message.tensors_size());
    for (const auto& tensor : message.tensors()) {
        program.tensors.push_back(
            {require_label("A tensor", tensor.name()), decode_shape(tensor.name(), tensor.shape())});
    }
    require_few("memories", message.carry_size());
    for (const auto& memory : message.carry()) {
        program.carry.push_back(
            {require_label("A memory", memory.name()), decode_shape(memory.name(), memory.shape()), memory.next()});
    }
    require_few("chance registers", message.chance_size());
    for (const auto& chance : message.chance()) program.chance.push_back(decode_chance(chance));
    return program;
}

Head decode_head(const v1::Head& message) {
    const std::vector<HeadKind>& known = named_heads();
    if (std::none_of(known.begin(), known.end(),
                     [&](HeadKind kind) { return static_cast<int>(kind) == static_cast<int>(message.kind()); })) {
        throw ContractViolation("The policy's head is of kind " + std::to_string(message.kind()) +
                                ", which this version does not know. Upgrade the client, or decide on the server.");
    }
    Head head;
    head.kind = static_cast<HeadKind>(message.kind());
    head.inputs = strings(message.inputs());
    head.tensors = strings(message.tensors());
    if (message.has_mask()) {
        head.mask = message.mask();
    }
    head.settings = decode_settings(message.settings());
    return head;
}

std::int64_t require_choices(std::uint64_t count) {
    if (count == 0 || count > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
        throw ContractViolation("A part of an action has " + std::to_string(count) +
                                " choices; expected at least one for each part.");
    }
    return static_cast<std::int64_t>(count);
}

template <typename Message>
BoxAction decode_bounds(const Message& message) {
    BoxAction box{{message.low().begin(), message.low().end()}, {message.high().begin(), message.high().end()}};
    require_few("bounds", std::max(message.low_size(), message.high_size()));
    // NaN fails every comparison, so this refuses it too.
    if (box.low.empty() || box.low.size() != box.high.size() ||
        !std::equal(box.low.begin(), box.low.end(), box.high.begin(), [](double a, double b) { return a <= b; })) {
        throw ContractViolation("An action has " + std::to_string(box.low.size()) + " lower and " +
                                std::to_string(box.high.size()) +
                                " upper bounds; expected as many of both, at least one, and no lower bound above its "
                                "upper one.");
    }
    return box;
}

std::vector<std::int64_t> decode_sizes(const google::protobuf::RepeatedField<std::uint64_t>& counts) {
    require_few("sizes", counts.size());
    std::vector<std::int64_t> sizes;
    for (const std::uint64_t count : counts) sizes.push_back(require_choices(count));
    if (sizes.empty()) require_choices(0);
    return sizes;
}

}  // namespace

v1::ArraySpec encode_array(const ArraySpec& spec) {
    v1::ArraySpec message;
    message.set_name(spec.name);
    message.set_element_type(static_cast<v1::ElementType>(spec.type));
    message.mutable_shape()->Add(spec.shape.begin(), spec.shape.end());
    return message;
}

ArraySpec decode_array(const v1::ArraySpec& message) {
    const std::string name = require_label("An array", message.name());
    if (message.element_type() == v1::ELEMENT_TYPE_UNSPECIFIED || !v1::ElementType_IsValid(message.element_type())) {
        throw ContractViolation("Array '" + name + "' has element type " + std::to_string(message.element_type()) +
                                ", which this version does not know. Upgrade the older of client and server.");
    }
    return {name, static_cast<ElementType>(message.element_type()), decode_shape(name, message.shape())};
}

std::vector<ArraySpec> decode_arrays(const std::string& group,
                                     const google::protobuf::RepeatedPtrField<v1::ArraySpec>& messages) {
    std::vector<ArraySpec> specs;
    std::set<std::string> names;
    for (const auto& message : messages) {
        specs.push_back(decode_array(message));
        if (!names.insert(specs.back().name).second || specs.size() > most_arrays) {
            throw ContractViolation("The " + group + " has '" + specs.back().name + "' twice, or more than " +
                                    std::to_string(most_arrays) + " arrays. Name each array once.");
        }
    }
    return specs;
}

v1::ActionSpec encode_action(const ActionSpec& action) {
    v1::ActionSpec message;
    if (const auto* discrete = std::get_if<DiscreteAction>(&action)) {
        message.mutable_discrete()->set_n(static_cast<std::uint64_t>(discrete->n));
        message.mutable_discrete()->set_start(discrete->start);
    } else if (const auto* several = std::get_if<MultiDiscreteAction>(&action)) {
        message.mutable_multi_discrete()->mutable_sizes()->Add(several->sizes.begin(), several->sizes.end());
    } else if (const auto* box = std::get_if<BoxAction>(&action)) {
        message.mutable_box()->mutable_low()->Add(box->low.begin(), box->low.end());
        message.mutable_box()->mutable_high()->Add(box->high.begin(), box->high.end());
    } else if (const auto* mixed = std::get_if<MixedAction>(&action)) {
        message.mutable_mixed()->mutable_sizes()->Add(mixed->sizes.begin(), mixed->sizes.end());
        message.mutable_mixed()->mutable_low()->Add(mixed->low.begin(), mixed->low.end());
        message.mutable_mixed()->mutable_high()->Add(mixed->high.begin(), mixed->high.end());
    }
    return message;
}

ActionSpec decode_action(const v1::ActionSpec& message) {
    switch (message.kind_case()) {
        case v1::ActionSpec::kDiscrete:
            return DiscreteAction{require_choices(message.discrete().n()), message.discrete().start()};
        case v1::ActionSpec::kMultiDiscrete: return MultiDiscreteAction{decode_sizes(message.multi_discrete().sizes())};
        case v1::ActionSpec::kBox: return decode_bounds(message.box());
        case v1::ActionSpec::kMixed: {
            BoxAction box = decode_bounds(message.mixed());
            return MixedAction{decode_sizes(message.mixed().sizes()), std::move(box.low), std::move(box.high)};
        }
        case v1::ActionSpec::KIND_NOT_SET: break;
    }
    throw ContractViolation("An action is of no kind that this version knows. Upgrade the older of client and server.");
}

PolicySpec decode_policy(const v1::PolicySpec& message) {
    PolicySpec spec{decode_action(message.action()), decode_program(message.program()), decode_head(message.head())};
    if (message.has_model()) spec.model = decode_program(message.model());
    return spec;
}

}  // namespace rl4sys::wire
