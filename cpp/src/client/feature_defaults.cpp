#include "client/feature_defaults.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "client/section.hpp"
#include "client/spaces.hpp"

namespace rl4sys::client {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// The numbers of a value in C order; null becomes NaN, and infinity marks anything else, or another shape.
void add_numbers(const Json& value, const Shape& shape, std::size_t axis, std::vector<double>& numbers) {
    if (axis < shape.size()) {
        if (!value.is_array() || value.size() != shape[axis]) {
            numbers.push_back(infinity);
            return;
        }
        for (const auto& part : value) {
            add_numbers(part, shape, axis + 1, numbers);
        }
        return;
    }
    numbers.push_back(value.is_number() ? value.get<double>() : value.is_null() ? std::nan("") : infinity);
}

SettingsError does_not_fit(const ArraySpec& spec, const std::string& got) {
    return SettingsError("defaults." + spec.name + ": got " + got +
                         "; expected a finite number, or a list of them for " + to_string(spec) +
                         ", with null for features without a default.");
}

std::vector<double> parsed(const ArraySpec& spec, const Json& value) {
    std::vector<double> numbers;
    add_numbers(value, value.is_number() ? Shape() : spec.shape, 0, numbers);
    try {
        static_cast<void>(default_row(spec, numbers));
    } catch (const SettingsError&) {
        throw does_not_fit(spec, shown(value));
    }
    return numbers;
}

/// Numbers of any depth, for an array that is not described in the settings.
void add_flat(const Json& value, std::vector<double>& numbers) {
    if (value.is_array()) {
        for (const auto& part : value) {
            add_flat(part, numbers);
        }
    } else {
        numbers.push_back(value.is_number() ? value.get<double>() : value.is_null() ? std::nan("") : infinity);
    }
}

}  // namespace

std::vector<double> default_row(const ArraySpec& spec, const std::vector<double>& values) {
    const bool is_real = spec.type == ElementType::Float32 || spec.type == ElementType::Float64;
    const bool is_whole_row = values.size() == spec.values();
    const bool is_complete = std::all_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); });
    const bool is_partial = is_real && is_whole_row && !spec.shape.empty() &&
                            std::none_of(values.begin(), values.end(), [](double v) { return std::isinf(v); });
    if ((values.size() != 1 && !is_whole_row) || !(is_complete || is_partial)) {
        throw does_not_fit(spec, std::to_string(values.size()) + " values");
    }
    return is_whole_row ? values : std::vector<double>(spec.values(), values.front());
}

FeatureDefaults feature_defaults(const Json& given, const Json& observation, const std::vector<ArraySpec>& specs) {
    FeatureDefaults defaults;
    Section part(given.is_null() ? Json::object() : given, "defaults");
    for (const ArraySpec& spec : specs) {
        if (part.contains(spec.name)) {
            defaults[spec.name] = parsed(spec, part.raw(spec.name));
        }
    }
    if (!specs.empty()) {
        part.finish();
    }
    for (const ArraySpec& spec : specs) {
        const Json described = is_one_array(observation) ? observation : observation.value(spec.name, Json());
        if (!described.is_object() || described.value("default", Json()).is_null() ||
            (is_one_array(observation) && spec.name != observation_name)) {
            continue;
        }
        if (defaults.count(spec.name) != 0) {
            throw SettingsError("defaults." + spec.name +
                                ": 'observation' has a default for it, too. Keep one of them.");
        }
        defaults[spec.name] = parsed(spec, described["default"]);
    }
    const Json others = part.rest();
    for (const auto& [name, value] : others.items()) {
        if (defaults.count(name) == 0) {
            add_flat(value, defaults[name]);
        }
    }
    return defaults;
}

}  // namespace rl4sys::client
