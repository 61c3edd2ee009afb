#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "rl4sys/policy.hpp"

// Apart from the reader: a program that only reads policies then links nothing that writes JSON.
namespace rl4sys {
namespace {

using Json = nlohmann::json;

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
