#include "rl4sys/settings.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "client/feature_defaults.hpp"
#include "client/original_settings.hpp"
#include "client/reward_window.hpp"
#include "client/section.hpp"
#include "client/settings_check.hpp"
#include "client/spaces.hpp"

namespace rl4sys {
namespace {

using client::Json;
using client::Section;
using client::shown;
using std::filesystem::path;

std::string contents(const path& file) {
    std::ifstream stream(file, std::ios::binary);
    std::ostringstream text;
    if (!stream || std::filesystem::is_directory(file) || !(text << stream.rdbuf())) {
        const int cause = std::filesystem::is_directory(file) ? EISDIR : errno;
        throw SettingsError(std::string("cannot be read: ") + std::strerror(cause) + ".");
    }
    return text.str();
}

std::optional<path> path_from(Section& section, const std::string& name, const path& directory) {
    std::string text = section.text(name);
    if (text.empty()) {
        return std::nullopt;
    }
    const char* home = std::getenv("HOME");
    if (home != nullptr && text[0] == '~' && (text.size() == 1 || text[1] == '/')) {
        text = home + text.substr(1);
    }
    return directory / text;
}

std::string token_from(Section& section, const path& directory) {
    const std::string token = section.text("token");
    const auto file = path_from(section, "token_file", directory);
    if (!token.empty() && file) {
        throw SettingsError("token and token_file are both given; keep one of them.");
    }
    if (!file) {
        return token;
    }
    std::string line;
    try {
        line = contents(*file);
    } catch (const SettingsError& error) {
        throw SettingsError("token_file: " + file->string() + " " + error.what());
    }
    line = line.substr(0, line.find('\n'));
    const auto first = line.find_first_not_of(" \t\r");
    return first == std::string::npos ? "" : line.substr(first, line.find_last_not_of(" \t\r") - first + 1);
}

/// The name of the algorithm, and the parameters of the learner as the server reads them.
std::pair<std::string, Json> algorithm_from(Section& section) {
    const Json given = section.raw("algorithm");
    Section part(given.is_string() ? Json{{"name", given}} : given.is_null() ? Json::object() : given, "algorithm");
    const std::string name = part.text("name");
    Json parameters = Json::object();
    if (Json chosen = part.rest(); !chosen.empty()) {
        parameters["algorithm"] = std::move(chosen);
    }
    for (const std::string other : {"network", "buffer"}) {
        if (const Json value = section.raw(other); !value.is_null()) {
            parameters[other] = Section(value, other).rest();
        }
    }
    for (const std::string other : {"normalize_obs", "normalize_reward"}) {
        if (const Json value = section.raw(other); !value.is_null()) {
            parameters[other] = value;
        }
    }
    if (!parameters.empty() && name.empty()) {
        throw SettingsError("Parameters " + shown(parameters) + " are given without an algorithm; " +
                            (section.contains("experiment") ? "leave them to the experiment." : "add algorithm.name."));
    }
    if (const auto seed = section.whole("seed"); seed && !name.empty()) {
        parameters["seed"] = *seed;
    }
    return {name, parameters};
}

ActingMode mode_from(Section& section) {
    const std::string word = section.choice("mode", {"explore", "exploit", "observe"}, "explore");
    return word == "exploit" ? ActingMode::Exploit : word == "observe" ? ActingMode::Observe : ActingMode::Explore;
}

Overflow overflow_from(Section& section) {
    const std::string word = section.choice("overflow", {"block", "drop_oldest", "drop_newest"}, "drop_oldest");
    return word == "block" ? Overflow::Block : word == "drop_newest" ? Overflow::DropNewest : Overflow::DropOldest;
}

std::optional<BadInputChoice> on_bad_input_from(Section& section) {
    const std::string word = section.choice("on_bad_input", {"raise", "fallback", "hold"}, "");
    return word.empty()      ? std::nullopt
           : word == "raise" ? std::optional(BadInputChoice::Raise)
           : word == "hold"  ? std::optional(BadInputChoice::Hold)
                             : std::optional(BadInputChoice::FallBack);
}

template <typename Number>
Number unsigned_from(Section& section, const std::string& name, Number otherwise, std::int64_t least) {
    const auto value = section.whole(name, least);
    return value ? static_cast<Number>(*value) : otherwise;
}

void read_limits(Section& section, ClientSettings& settings) {
    settings.timeout = section.number("timeout", 0.001).value_or(settings.timeout);
    settings.call_timeout = section.number("call_timeout", 0.001);
    settings.close_timeout = section.number("close_timeout", 0.0).value_or(settings.close_timeout);
    settings.outbox_bytes = unsigned_from(section, "outbox_bytes", settings.outbox_bytes, 1024);
    settings.overflow = overflow_from(section);
    settings.max_segment_length = unsigned_from(section, "max_segment_length", settings.max_segment_length, 1);
    if (const Json window = section.raw("reward_window"); !window.is_null()) {
        settings.reward_window = client::reward_window_from_settings(window);
    }
    if (const Json timeout = section.raw("reward_timeout"); !timeout.is_null()) {
        settings.reward_window = client::reward_timeout_from_settings(timeout, section.raw("reward_window"));
    }
    settings.send_interval = section.number("send_interval").value_or(settings.send_interval);
    settings.send_frequency = section.whole("send_frequency", 1);
    settings.seed = section.whole("seed");
}

ClientSettings from_json(Json values, const path& directory) {
    ClientSettings settings;
    if (values.is_object() && client::is_original(values)) {
        values = client::translate(values);
    }
    Section section(std::move(values));
    const auto [algorithm, parameters] = algorithm_from(section);
    settings.algorithm = algorithm;
    settings.parameters_json = parameters.empty() ? "" : parameters.dump();
    if (const Json action = section.raw("action"); !action.is_null()) {
        settings.action = client::action_from_settings(action);
        settings.action_structure = client::action_structure_from_settings(action);
    }
    if (const Json observation = section.raw("observation"); !observation.is_null()) {
        settings.observation = client::observation_from_settings(observation);
    }
    if (const Json candidates = section.raw("candidates"); !candidates.is_null()) {
        const auto arrays = client::candidates_from_settings(candidates);
        settings.observation.insert(settings.observation.begin(), arrays.begin(), arrays.end());
        const DiscreteAction choice{arrays[0].shape[0]};
        const auto* given = settings.action ? std::get_if<DiscreteAction>(&*settings.action) : nullptr;
        if (settings.action && (given == nullptr || given->n != choice.n || given->start != 0)) {
            const std::string most = std::to_string(choice.n);
            throw SettingsError("action: there are up to " + most + " candidates. Leave it out, or let it be " + most +
                                ".");
        }
        settings.action = choice;
    }
    if (section.raw("action_mask") == Json(true) && settings.action && !client::has_mask(settings.observation)) {
        const auto mask = mask_for(*settings.action);
        settings.observation.insert(settings.observation.end(), mask.begin(), mask.end());
    }
    settings.defaults =
        client::feature_defaults(section.raw("defaults"), section.raw("observation"), settings.observation);
    settings.on_bad_input = on_bad_input_from(section);
    settings.client_id = section.text("client_id");
    if (const std::string server = section.text("server"); !server.empty()) {
        settings.server = server;
    }
    settings.token = token_from(section, directory);
    settings.token_file = path_from(section, "token_file", directory);
    if (section.contains("tls")) {
        Section tls = section.section("tls");
        settings.tls =
            Tls{path_from(tls, "ca", directory), path_from(tls, "cert", directory), path_from(tls, "key", directory)};
        tls.finish();
    }
    settings.insecure = section.raw("insecure") == Json(true);
    settings.policy_id = section.text("policy_id");
    settings.experiment = section.text("experiment");
    settings.outbox = path_from(section, "outbox", directory);
    settings.cache = path_from(section, "cache", directory);
    settings.kill_file = path_from(section, "kill_file", directory);
    settings.lease = section.number("lease", 0.1);
    settings.mode = mode_from(section);
    settings.decide = section.choice("decide", {"local", "server"}, "local") == "server" ? DecisionPlace::Server
                                                                                         : DecisionPlace::Local;
    settings.decide_timeout = section.number("decide_timeout", 0.001).value_or(settings.decide_timeout);
    read_limits(section, settings);
    section.finish();
    return client::checked(std::move(settings));
}

}  // namespace

ClientSettings parse_settings(std::string_view json, const path& directory) {
    Json values;
    try {
        values = Json::parse(json);
    } catch (const Json::exception& error) {
        // Also a number such as 1e999, which no double holds.
        throw SettingsError(std::string("the file is not valid JSON: ") + error.what() + ". Correct it.");
    }
    return from_json(std::move(values), directory);
}

ClientSettings load_settings(const path& file) {
    try {
        if (file.extension() == ".yaml" || file.extension() == ".yml") {
            throw SettingsError("YAML is read by the Python client only; write the file as JSON.");
        }
        return parse_settings(contents(file), file.parent_path());
    } catch (const SettingsError& error) {
        throw SettingsError(file.string() + ": " + error.what());
    }
}

}  // namespace rl4sys
