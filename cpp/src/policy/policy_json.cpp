#include <cmath>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
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

}  // namespace rl4sys
