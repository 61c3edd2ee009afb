#include "client/spaces.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "client/section.hpp"

namespace rl4sys {

std::vector<ArraySpec> mask_for(const ActionSpec& action) {
    std::int64_t choices = 0;
    if (const auto* discrete = std::get_if<DiscreteAction>(&action)) {
        choices = discrete->n;
    } else if (const auto* several = std::get_if<MultiDiscreteAction>(&action)) {
        choices = std::accumulate(several->sizes.begin(), several->sizes.end(), std::int64_t{0});
    } else if (const auto* mixed = std::get_if<MixedAction>(&action)) {
        choices = std::accumulate(mixed->sizes.begin(), mixed->sizes.end(), std::int64_t{0});
    } else {
        return {};
    }
    return {{std::string(mask_name), ElementType::Bool, {static_cast<std::uint32_t>(choices)}}};
}

namespace client {
namespace {

Shape shape_from(const Json& value, const std::string& where) {
    const Json lengths = value.is_number_integer() ? Json::array({value}) : value.is_null() ? Json::array() : value;
    Shape shape;
    bool sound = lengths.is_array();
    for (const Json& length : lengths) {
        sound = sound && length.is_number_integer() && length.get<std::int64_t>() > 0 &&
                length.get<std::int64_t>() <= std::numeric_limits<std::uint32_t>::max();
        if (sound) {
            shape.push_back(length.get<std::uint32_t>());
        }
    }
    if (!sound) {
        throw SettingsError(where + ": got shape " + shown(value) + "; expected a length or a list of lengths.");
    }
    return shape;
}

ArraySpec array_from(const std::string& name, const Json& value, const std::string& where) {
    Section section(value.is_object() ? value : Json{{"shape", value}}, where);
    const std::string dtype = section.text("dtype");
    const Json shape = section.raw("shape");
    section.raw("default");
    section.finish();
    try {
        const std::string otherwise = name == mask_name ? "bool" : "float32";
        return {name, element_type(dtype.empty() ? otherwise : dtype), shape_from(shape, where)};
    } catch (const SettingsError&) {
        throw;
    } catch (const std::invalid_argument&) {
        throw SettingsError(where + ": got dtype '" + dtype + "'; expected one such as float32 or uint8.");
    }
}

std::vector<double> bounds_from(const Json& value, const Json& low, const Json& high, const std::string& where) {
    std::vector<double> bounds;
    for (const Json& bound : value.is_array() ? value : Json::array()) {
        if (!bound.is_number()) {
            throw SettingsError(where + ": got bounds " + shown(low) + " and " + shown(high) + "; expected two lists.");
        }
        bounds.push_back(bound.get<double>());
    }
    return bounds;
}

ActionSpec box_from(const Json& low, const Json& high, const std::string& where) {
    const BoxAction box{bounds_from(low, low, high, where), bounds_from(high, low, high, where)};
    if (box.low.empty() || box.low.size() != box.high.size() ||
        !std::equal(box.low.begin(), box.low.end(), box.high.begin(), [](double a, double b) { return a <= b; })) {
        throw SettingsError(where + ": got bounds " + shown(low) + " to " + shown(high) +
                            "; expected one low and one high bound for each number, low at most high.");
    }
    return box;
}

ActionSpec several_from(const Json& sizes, const std::string& where) {
    MultiDiscreteAction several;
    for (const Json& size : sizes) {
        if (!size.is_number_integer() || size.get<std::int64_t>() < 1) {
            throw SettingsError(where + ".sizes: got " + shown(sizes) + "; expected whole numbers, at least 1.");
        }
        several.sizes.push_back(size.get<std::int64_t>());
    }
    if (!sizes.is_array() || several.sizes.empty()) {
        throw SettingsError(where + ".sizes: got " + shown(sizes) + "; expected a list of whole numbers.");
    }
    return several;
}

ActionSpec one_action(const Json& value, const std::string& where) {
    Section section(value.is_number_integer() ? Json{{"n", value}} : value, where);
    std::vector<std::string> given;
    for (const auto& [name, kind] : {std::pair("n", "discrete"), {"sizes", "multi_discrete"}, {"low", "box"}}) {
        if (section.contains(name)) {
            given.emplace_back(kind);
        }
    }
    if (given.size() != 1 || section.choice("kind", {"discrete", "multi_discrete", "box"}, given[0]) != given[0]) {
        throw SettingsError(where + ": got " + shown(value) +
                            "; expected one of n, sizes, or low with high, or named parts with one of these each.");
    }
    ActionSpec action;
    if (given[0] == "discrete") {
        const std::int64_t n = section.whole("n", 1).value_or(1);
        action = DiscreteAction{n, section.whole("start", std::numeric_limits<std::int64_t>::min()).value_or(0)};
    } else if (given[0] == "multi_discrete") {
        action = several_from(section.raw("sizes"), where);
    } else {
        const Json low = section.raw("low");
        action = box_from(low, section.raw("high"), where);
    }
    section.finish();
    return action;
}

/// Whether an action is described by parts, in a list or by name, rather than by one kind.
bool has_parts(const Json& value) {
    const bool has_kind = value.contains("n") || value.contains("sizes") || value.contains("low");
    return !value.empty() && (value.is_array() || (value.is_object() && !has_kind));
}

/// Add the parts within a value, with their paths.
void add_parts(const Json& value, const std::string& path, std::vector<std::pair<std::string, ActionSpec>>& parts) {
    if (!has_parts(value)) {
        parts.emplace_back(path, one_action(value, "action." + path));
        return;
    }
    std::size_t position = 0;
    for (const auto& [name, part] : value.items()) {
        const std::string word = value.is_array() ? std::to_string(position++) : name;
        add_parts(part, path.empty() ? word : path + "." + word, parts);
    }
}

}  // namespace

std::vector<ArraySpec> observation_from_settings(const Json& value) {
    if (is_one_array(value)) {
        return {array_from(std::string(observation_name), value, "observation")};
    }
    std::vector<ArraySpec> arrays;
    for (const auto& [name, part] : value.items()) {
        arrays.push_back(array_from(name, part, "observation." + name));
    }
    return arrays;
}

std::vector<ArraySpec> candidates_from_settings(const Json& value) {
    const auto is_count = [](const Json& number) {
        return number.is_number_integer() && number.get<std::int64_t>() > 0 &&
               number.get<std::int64_t>() <= (std::int64_t{1} << 24);
    };
    if (!value.is_array() || value.size() != 2 || !is_count(value[0]) || !is_count(value[1])) {
        throw SettingsError("candidates: got " + value.dump() +
                            "; expected two numbers: how many there are at most, and how many features each has, such "
                            "as [128, 8].");
    }
    return {{std::string(candidates_name),
             ElementType::Float32,
             {value[0].get<std::uint32_t>(), value[1].get<std::uint32_t>()}},
            {std::string(candidate_count_name), ElementType::Float32, {1}}};
}

bool is_one_array(const Json& value) {
    if (!value.is_object()) {
        return true;
    }
    const auto items = value.items();
    return std::all_of(items.begin(), items.end(), [](const auto& item) {
        return item.key() == "dtype" || item.key() == "shape" || item.key() == "default";
    });
}

ActionSpec action_from_settings(const Json& value) {
    const auto structure = action_structure_from_settings(value);
    return structure ? structure->spec() : one_action(value, "action");
}

std::shared_ptr<const ActionStructure> action_structure_from_settings(const Json& value) {
    if (!has_parts(value)) {
        return nullptr;
    }
    std::vector<std::pair<std::string, ActionSpec>> parts;
    add_parts(value, "", parts);
    try {
        return std::make_shared<const ActionStructure>(parts);
    } catch (const std::invalid_argument& error) {
        throw SettingsError(std::string("action: ") + error.what());
    }
}

bool has_mask(const std::vector<ArraySpec>& observation) {
    return std::any_of(observation.begin(), observation.end(),
                       [](const ArraySpec& spec) { return spec.name == mask_name; });
}

}  // namespace client
}  // namespace rl4sys
