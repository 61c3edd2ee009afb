#include <cmath>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "rl4sys/policy.hpp"

namespace rl4sys {
namespace {

using Json = nlohmann::json;

constexpr int deepest = 16;

/// JSON that is nested deeper than any spec could exhaust the stack.
Json parsed(std::string_view text) {
    const auto shallow = [](int depth, Json::parse_event_t, Json&) {
        if (depth > deepest) throw BadPolicy("The policy's JSON is nested too deeply to be a spec.");
        return true;
    };
    return Json::parse(text.begin(), text.end(), shallow);
}

double bound(const Json& value) {
    if (value.is_number()) return value.get<double>();
    if (value == "inf") return std::numeric_limits<double>::infinity();
    if (value == "-inf") return -std::numeric_limits<double>::infinity();
    throw BadPolicy("A bound of a box action is " + value.dump().substr(0, 64) +
                    "; expected a number, \"inf\" or \"-inf\".");
}

ActionSpec read_action(const Json& raw) {
    const std::string& kind = raw.at("kind").get_ref<const std::string&>();
    if (kind == "discrete") return DiscreteAction{raw.at("n").get<std::int64_t>(), raw.at("start").get<std::int64_t>()};
    if (kind == "multi_discrete") return MultiDiscreteAction{raw.at("sizes").get<std::vector<std::int64_t>>()};
    if (kind == "box") {
        BoxAction box;
        for (const Json& value : raw.at("low")) box.low.push_back(bound(value));
        for (const Json& value : raw.at("high")) box.high.push_back(bound(value));
        return box;
    }
    if (kind == "mixed") {
        MixedAction mixed{raw.at("sizes").get<std::vector<std::int64_t>>(), {}, {}};
        for (const Json& value : raw.at("low")) mixed.low.push_back(bound(value));
        for (const Json& value : raw.at("high")) mixed.high.push_back(bound(value));
        return mixed;
    }
    throw BadPolicy("Unknown action '" + kind.substr(0, 64) +
                    "'; expected kind discrete, multi_discrete, box or mixed.");
}

std::uint32_t read_length(const char* what, const Json& raw) {
    if (!raw.is_number_unsigned() || raw.get<std::uint64_t>() > std::numeric_limits<std::uint32_t>::max()) {
        throw BadPolicy(std::string(what) + " " + raw.dump().substr(0, 64) + "; expected a whole number below 2^32.");
    }
    return raw.get<std::uint32_t>();
}

Shape read_shape(const Json& raw) {
    Shape shape;
    for (const Json& length : raw) shape.push_back(read_length("A shape has the length", length));
    return shape;
}

Setting read_setting(const std::string& name, const Json& raw) {
    if (raw.is_boolean()) return raw.get<bool>();
    if (raw.is_string()) return raw.get<std::string>();
    if (raw.is_number_float()) return raw.get<double>();
    if (raw.is_number_unsigned() && raw.get<std::uint64_t>() > std::numeric_limits<std::int64_t>::max()) {
        return raw.get<double>();
    }
    if (raw.is_number_integer()) return raw.get<std::int64_t>();
    bool whole = raw.is_array(), numbers = raw.is_array();
    if (raw.is_array()) {
        for (const Json& item : raw) {
            whole = whole && item.is_number_integer();
            numbers = numbers && item.is_number();
        }
    }
    if (whole) return raw.get<std::vector<std::int64_t>>();
    if (numbers) return raw.get<std::vector<double>>();
    throw BadPolicy("Setting '" + name.substr(0, 64) + "' is " + raw.dump().substr(0, 64) +
                    "; expected a number, a text, a truth value or a list of numbers.");
}

Settings read_settings(const Json& raw) {
    Settings settings;
    for (const auto& item : raw.items()) settings.emplace(item.key(), read_setting(item.key(), item.value()));
    return settings;
}

std::vector<std::string> names(const Json& raw) {
    return raw.get<std::vector<std::string>>();
}

Chance read_chance(const Json& raw) {
    const std::string kind = raw.at("distribution").get<std::string>();
    for (const Distribution distribution : {Distribution::Normal, Distribution::Uniform}) {
        if (kind != distribution_name(distribution)) continue;
        return {raw.at("name").get<std::string>(), read_length("A chance register has the size", raw.at("size")),
                distribution};
    }
    throw BadPolicy("Unknown distribution '" + kind.substr(0, 64) +
                    "'; expected normal or uniform. Upgrade the client, or decide on the server.");
}

Program read_program(const Json& raw) {
    Program program;
    for (const Json& input : raw.at("inputs")) {
        program.inputs.push_back({input.at("name").get<std::string>(),
                                  element_type(input.at("dtype").get<std::string>()), read_shape(input.at("shape"))});
    }
    for (const Json& op : raw.at("ops")) {
        program.ops.push_back({op.at("kind").get<std::string>(), names(op.at("outputs")), names(op.at("inputs")),
                               names(op.at("tensors")), read_settings(op.at("settings"))});
    }
    for (const Json& tensor : raw.at("tensors")) {
        program.tensors.push_back({tensor.at("name").get<std::string>(), read_shape(tensor.at("shape"))});
    }
    for (const Json& memory : raw.at("carry")) {
        program.carry.push_back({memory.at("name").get<std::string>(), read_shape(memory.at("shape")),
                                 memory.at("next").get<std::string>()});
    }
    if (raw.contains("chance")) {
        for (const Json& chance : raw.at("chance")) program.chance.push_back(read_chance(chance));
    }
    return program;
}

HeadKind read_head_kind(const std::string& name) {
    for (const HeadKind kind : named_heads()) {
        if (head_name(kind) == name) return kind;
    }
    throw BadPolicy("Unknown head '" + name.substr(0, 64) + "'. Upgrade the client, or decide on the server.");
}

Head read_head(const Json& raw) {
    Head head;
    head.kind = read_head_kind(raw.at("kind").get<std::string>());
    head.inputs = names(raw.at("inputs"));
    head.tensors = names(raw.at("tensors"));
    if (!raw.at("mask").is_null()) head.mask = raw.at("mask").get<std::string>();
    head.settings = read_settings(raw.at("settings"));
    return head;
}

/// 1 and 1.0 are equal, so they have the same text.
Json plain(double value) {
    if (std::isnan(value)) throw BadPolicy("A number of the policy is NaN, which JSON cannot hold.");
    if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
    // Beyond this, whole numbers do not fit; the text stays a number, but no longer the canonical one.
    if (std::trunc(value) == value && std::abs(value) < 9007199254740992.0) return static_cast<std::int64_t>(value);
    return value;
}

Json plain(const Settings& settings) {
    Json result = Json::object();
    for (const auto& [name, setting] : settings) {
        result[name] = std::visit(
            [](const auto& value) -> Json {
                using Value = std::decay_t<decltype(value)>;
                if constexpr (std::is_same_v<Value, double>) {
                    return plain(value);
                } else if constexpr (std::is_same_v<Value, std::vector<double>>) {
                    Json list = Json::array();
                    for (const double item : value) list.push_back(plain(item));
                    return list;
                } else {
                    return value;
                }
            },
            setting);
    }
    return result;
}

Json plain(const ActionSpec& action) {
    if (const auto* discrete = std::get_if<DiscreteAction>(&action)) {
        return {{"kind", "discrete"}, {"n", discrete->n}, {"start", discrete->start}};
    }
    if (const auto* several = std::get_if<MultiDiscreteAction>(&action)) {
        return {{"kind", "multi_discrete"}, {"sizes", several->sizes}};
    }
    const auto* mixed = std::get_if<MixedAction>(&action);
    Json low = Json::array(), high = Json::array();
    for (const double value : mixed ? mixed->low : std::get<BoxAction>(action).low) low.push_back(plain(value));
    for (const double value : mixed ? mixed->high : std::get<BoxAction>(action).high) high.push_back(plain(value));
    if (mixed) return {{"kind", "mixed"}, {"sizes", mixed->sizes}, {"low", low}, {"high", high}};
    return {{"kind", "box"}, {"low", low}, {"high", high}};
}

Json plain(const Program& program) {
    Json inputs = Json::array(), ops = Json::array(), tensors = Json::array(), carry = Json::array();
    for (const ArraySpec& input : program.inputs) {
        inputs.push_back({{"name", input.name}, {"dtype", element_name(input.type)}, {"shape", input.shape}});
    }
    for (const Op& op : program.ops) {
        ops.push_back({{"kind", op.kind},
                       {"outputs", op.outputs},
                       {"inputs", op.inputs},
                       {"tensors", op.tensors},
                       {"settings", plain(op.settings)}});
    }
    for (const Tensor& tensor : program.tensors) tensors.push_back({{"name", tensor.name}, {"shape", tensor.shape}});
    for (const Memory& memory : program.carry) {
        carry.push_back({{"name", memory.name}, {"shape", memory.shape}, {"next", memory.next}});
    }
    Json result = {{"inputs", inputs}, {"ops", ops}, {"tensors", tensors}, {"carry", carry}};
    // Left out if empty, so that programs without chance keep the text that they always had.
    for (const Chance& one : program.chance) {
        result["chance"].push_back(
            {{"name", one.name}, {"size", one.size}, {"distribution", distribution_name(one.distribution)}});
    }
    return result;
}

}  // namespace

PolicySpec policy_from_json(std::string_view text) {
    try {
        const Json raw = parsed(text);
        PolicySpec spec{read_action(raw.at("action")), read_program(raw.at("program")), read_head(raw.at("head"))};
        if (raw.contains("model")) spec.model = read_program(raw.at("model"));
        return spec;
    } catch (const Json::exception& error) {
        throw BadPolicy(std::string("The policy's JSON is not a spec: ") + error.what());
    } catch (const BadPolicy&) {
        throw;
    } catch (const std::invalid_argument& error) {
        throw BadPolicy(error.what());
    }
}

std::string policy_to_json(const PolicySpec& spec) {
    const Head& head = spec.head;
    const Json mask = head.mask ? Json(*head.mask) : Json(nullptr);
    Json whole = {{"action", plain(spec.action)},
                  {"program", plain(spec.program)},
                  {"head",
                   {{"kind", head_name(head.kind)},
                    {"inputs", head.inputs},
                    {"tensors", head.tensors},
                    {"mask", mask},
                    {"settings", plain(head.settings)}}}};
    if (spec.model) whole["model"] = plain(*spec.model);
    try {
        return whole.dump(-1, ' ', true);
    } catch (const Json::exception& error) {
        throw BadPolicy(std::string("The policy has a name or text that is not UTF-8: ") + error.what());
    }
}

}  // namespace rl4sys
