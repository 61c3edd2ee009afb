#include "spec_reader.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <limits>

namespace rl4sys::python {
namespace {

namespace nb = nanobind;

using Names = std::vector<std::string>;

std::string text(nb::handle raw) {
    return nb::cast<std::string>(raw);
}

std::vector<double> bounds(nb::handle raw) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    std::vector<double> values;
    for (const nb::handle value : raw) {
        // Infinite bounds are texts, because JSON has no such numbers.
        values.push_back(!nb::isinstance<nb::str>(value) ? nb::cast<double>(value)
                         : text(value) == "inf"          ? infinity
                                                         : -infinity);
    }
    return values;
}

ActionSpec read_action(nb::dict raw) {
    const std::string kind = text(raw["kind"]);
    if (kind == "discrete") {
        return DiscreteAction{nb::cast<std::int64_t>(raw["n"]), nb::cast<std::int64_t>(raw["start"])};
    }
    if (kind == "multi_discrete") return MultiDiscreteAction{nb::cast<std::vector<std::int64_t>>(raw["sizes"])};
    if (kind == "box") return BoxAction{bounds(raw["low"]), bounds(raw["high"])};
    if (kind == "mixed") {
        return MixedAction{nb::cast<std::vector<std::int64_t>>(raw["sizes"]), bounds(raw["low"]), bounds(raw["high"])};
    }
    throw BadPolicy("Unknown action '" + kind + "'; expected kind discrete, multi_discrete, box or mixed.");
}

Setting read_setting(nb::handle raw) {
    if (nb::isinstance<nb::bool_>(raw)) return nb::cast<bool>(raw);
    if (nb::isinstance<nb::str>(raw)) return text(raw);
    if (nb::isinstance<nb::int_>(raw)) return nb::cast<std::int64_t>(raw);
    if (nb::isinstance<nb::float_>(raw)) return nb::cast<double>(raw);
    bool whole = true;
    for (const nb::handle item : raw) whole = whole && nb::isinstance<nb::int_>(item);
    if (whole) return nb::cast<std::vector<std::int64_t>>(raw);
    return nb::cast<std::vector<double>>(raw);
}

Settings read_settings(nb::dict raw) {
    Settings settings;
    for (const auto& [name, value] : raw) settings.emplace(text(name), read_setting(value));
    return settings;
}

Program read_program(nb::dict raw) {
    Program program;
    for (const nb::handle input : raw["inputs"]) {
        program.inputs.push_back(
            {text(input["name"]), element_type(text(input["dtype"])), nb::cast<Shape>(input["shape"])});
    }
    for (const nb::handle op : raw["ops"]) {
        program.ops.push_back({text(op["kind"]), nb::cast<Names>(op["outputs"]), nb::cast<Names>(op["inputs"]),
                               nb::cast<Names>(op["tensors"]), read_settings(nb::cast<nb::dict>(op["settings"]))});
    }
    for (const nb::handle tensor : raw["tensors"]) {
        program.tensors.push_back({text(tensor["name"]), nb::cast<Shape>(tensor["shape"])});
    }
    for (const nb::handle memory : raw["carry"]) {
        program.carry.push_back({text(memory["name"]), nb::cast<Shape>(memory["shape"]), text(memory["next"])});
    }
    if (raw.contains("chance")) {
        for (const nb::handle chance : raw["chance"]) {
            const bool is_normal = text(chance["distribution"]) == distribution_name(Distribution::Normal);
            program.chance.push_back({text(chance["name"]), nb::cast<std::size_t>(chance["size"]),
                                      is_normal ? Distribution::Normal : Distribution::Uniform});
        }
    }
    return program;
}

HeadKind read_head_kind(const std::string& name) {
    for (const HeadKind kind : named_heads()) {
        if (head_name(kind) == name) return kind;
    }
    throw UnknownOp("This runtime lacks the head '" + name + "'.");
}

}  // namespace

PolicySpec read_spec(nb::dict raw) {
    const nb::handle from = raw["head"];
    Head head;
    head.kind = read_head_kind(text(from["kind"]));
    head.inputs = nb::cast<Names>(from["inputs"]);
    head.tensors = nb::cast<Names>(from["tensors"]);
    if (!nb::object(from["mask"]).is_none()) head.mask = text(from["mask"]);
    head.settings = read_settings(nb::cast<nb::dict>(from["settings"]));
    PolicySpec spec{read_action(nb::cast<nb::dict>(raw["action"])), read_program(nb::cast<nb::dict>(raw["program"])),
                    std::move(head)};
    if (raw.contains("model")) spec.model = read_program(nb::cast<nb::dict>(raw["model"]));
    return spec;
}

}  // namespace rl4sys::python
