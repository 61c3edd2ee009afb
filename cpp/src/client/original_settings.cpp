#include "client/original_settings.hpp"

#include <algorithm>
#include <initializer_list>
#include <optional>

#include "client/original_parameters.hpp"
#include "client/section.hpp"

namespace rl4sys::client {
namespace {

using Words = std::vector<std::string>;

const Words telling{"algorithm_parameters", "network_architecture", "training",  "communication", "algorithm_name",
                    "train_server_address", "max_traj_length",      "act_limit", "type"};
const Words levels{"", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"};
constexpr std::int64_t other_longest = 1000;  // Length of a trajectory where `max_traj_length` is not given.

/// The first value that is given.
Json first_of(std::initializer_list<Json> values) {
    const auto* given = std::find_if(values.begin(), values.end(), [](const Json& value) { return !value.is_null(); });
    return given == values.end() ? Json() : *given;
}

void check_switches(Section& top) {
    for (const std::string name : {"enable_compression", "debug"}) {
        if (const Json value = top.raw(name); !value.is_null() && !value.is_boolean()) {
            throw SettingsError(name + ": got " + shown(value) + "; expected true or false.");
        }
    }
    top.choice("log_level", levels, "");
}

void require_kind(Section& top, const std::string& name) {
    const std::string other = top.text("algorithm_type");
    const std::string given = top.text("type");
    const std::string& kind = given.empty() ? other : given;
    if (kind.empty()) {
        return;
    }
    std::string plain = lower(kind);
    plain.erase(std::remove_if(plain.begin(), plain.end(), [](char c) { return c == '-' || c == '_'; }), plain.end());
    const std::string expected = is_on_policy(name) ? "onpolicy" : "offpolicy";
    if (plain != expected) {
        throw SettingsError("type: got '" + kind + "'; " + upper(name) + " is '" + expected +
                            "'. Correct it or leave it out.");
    }
}

Json network_from(Section network, const Json& hidden) {
    const Json sizes = first_of({network.raw("hidden_sizes"), hidden});
    const std::string activation = network.text("activation");
    network.finish();
    Json body{{"type", "mlp"}};
    if (!sizes.is_null()) {
        body["hidden_dims"] = sizes;
    }
    if (!activation.empty()) {
        body["activation"] = activation;
    }
    return body.size() > 1 ? Json{{"actor", body}, {"critic", body}} : Json();
}

void add_spaces(Json& ours, Section& top, Section& parameters, const std::string& original) {
    const auto size_at_top = top.whole("input_size", 1);
    const auto size = parameters.whole("input_size", 1);
    const auto count_at_top = top.whole("act_dim", 1);
    const auto count = parameters.whole("act_dim", 1);
    const double limit_at_top = top.number("act_limit").value_or(1.0);
    const double given = parameters.number("act_limit").value_or(limit_at_top);
    const double limit = given == 0.0 ? 1.0 : given;
    if (size || size_at_top) {
        ours["observation"] = size ? *size : *size_at_top;
    }
    if (count || count_at_top) {
        const std::int64_t parts = count ? *count : *count_at_top;
        const std::string name = lower(original);
        if (name == "ppo_continuous" || (is_continuous(name) && parameters.raw("discrete") != Json(true))) {
            const auto bounds = [parts](double bound) {
                return std::vector<double>(static_cast<std::size_t>(parts), bound);
            };
            ours["action"] = Json{{"low", bounds(-limit)}, {"high", bounds(limit)}};
        } else {
            ours["action"] = parts;
        }
    }
}

}  // namespace

OriginalNames original_names(const Json& values) {
    Section top(values);
    OriginalNames names;
    const Json algorithm = first_of({top.raw("algorithm_name"), top.raw("algorithm")});
    names.algorithm = algorithm.is_string() ? algorithm.get<std::string>() : "";
    const Json parameters = top.raw("algorithm_parameters");
    names.parameters_json = parameters.is_object() ? parameters.dump() : "{}";
    names.kind = lower(names.algorithm).rfind("ppo", 0) == 0 ? "onpolicy" : "offpolicy";
    names.debug = top.raw("debug") == Json(true);
    names.log_level = top.choice("log_level", levels, "");
    return names;
}

bool is_original(const Json& values) {
    return std::any_of(telling.begin(), telling.end(), [&](const std::string& name) { return values.contains(name); });
}

Json translate(const Json& values) {
    Section top(values);
    std::string original = top.text("algorithm_name");
    original = original.empty() ? top.text("algorithm") : original;
    original = original.empty() ? "PPO" : original;
    const std::string name = algorithm_of(original);
    Section parameters = top.section("algorithm_parameters");
    Section training = top.section("training");
    Section communication = top.section("communication");
    require_kind(top, name);
    check_switches(top);
    const auto longest = top.whole("max_traj_length", 1);
    Json ours = Json::object();
    ours["client_id"] = top.raw("client_id");
    const std::string address = communication.text("server_address");
    ours["server"] = address.empty() ? top.raw("train_server_address") : Json(address);
    ours["timeout"] = first_of({communication.raw("timeout"), top.raw("timeout"), top.raw("connection_timeout_seconds"),
                                top.raw("request_timeout_seconds")});
    ours["send_frequency"] = first_of({communication.raw("send_frequency"), top.raw("send_frequency")});
    ours["max_segment_length"] = longest ? Json(*longest) : Json();
    ours["seed"] = first_of({parameters.raw("seed"), top.raw("seed")});
    add_spaces(ours, top, parameters, original);
    if (!ours["send_frequency"].is_null()) {
        ours["send_interval"] = 1.0;
    }
    const auto width =
        ours.contains("observation") ? std::optional(ours["observation"].get<std::int64_t>()) : std::nullopt;
    const Translated found = translate_parameters(parameters, training, name, longest.value_or(other_longest), width);
    ours["algorithm"] = Json{{"name", name}};
    ours["algorithm"].update(found.algorithm);
    ours["buffer"] = found.buffer;
    ours["network"] = network_from(top.section("network_architecture"), found.hidden);
    // Settings that the original files did not have may be added to them: a token, an outbox, a cache.
    ours.update(communication.rest());
    ours.update(top.rest());
    Json given = Json::object();
    for (const auto& [key, value] : ours.items()) {
        if (!value.is_null()) {
            given[key] = value;
        }
    }
    return given;
}

}  // namespace rl4sys::client
