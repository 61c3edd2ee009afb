#include "client/original_settings.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <set>

#include "client/section.hpp"

namespace rl4sys::client {
namespace {

using Words = std::vector<std::string>;

const Words algorithms{"ppo", "dqn", "ddpg", "td3", "sac", "sql"};
const std::set<std::string> continuous{"ddpg", "td3", "sac", "sql"};
const std::map<std::string, std::string> renamed{
    {"learning_rate", "lr"}, {"lam", "gae_lambda"},        {"pi_lr", "lr"},
    {"vf_lr", "critic_lr"},  {"train_pi_iters", "epochs"}, {"train_v_iters", "critic_epochs"},
    {"q_lr", "lr"}};
const Words telling{"algorithm_parameters", "network_architecture", "training",  "communication", "algorithm_name",
                    "train_server_address", "max_traj_length",      "act_limit", "type"};
const Words ppo_names{"gamma",          "lr",
                      "critic_lr",      "anneal_lr",
                      "gae_lambda",     "clip_ratio",
                      "epochs",         "critic_epochs",
                      "minibatch_size", "episodes_per_update",
                      "value_coef",     "entropy_coef",
                      "clip_value",     "max_grad_norm",
                      "target_kl",      "normalize_advantage",
                      "log_std_init",   "max_age",
                      "max_importance"};
const Words dqn_names{"gamma",
                      "lr",
                      "anneal_lr",
                      "batch_size",
                      "train_frequency",
                      "gradient_steps",
                      "learning_starts",
                      "target_update_interval",
                      "polyak",
                      "epsilon_start",
                      "epsilon_end",
                      "exploration_fraction",
                      "exploration_steps",
                      "double",
                      "dueling",
                      "n_step",
                      "max_grad_norm"};
constexpr std::int64_t other_longest = 1000;  // Length of a trajectory where `max_traj_length` is not given.

bool is_on_policy(const std::string& name) {
    return name == "ppo";
}

std::string changed(std::string text, int (*change)(int)) {
    std::transform(text.begin(), text.end(), text.begin(), [change](unsigned char c) { return change(c); });
    return text;
}

/// The first value that is given.
Json first_of(const Json& one, const Json& other) {
    return one.is_null() ? other : one;
}

void require_kind(Section& top, const std::string& name) {
    const std::string kind = top.text("type");
    if (kind.empty()) {
        return;
    }
    std::string plain = changed(kind, std::tolower);
    plain.erase(std::remove_if(plain.begin(), plain.end(), [](char c) { return c == '-' || c == '_'; }), plain.end());
    const std::string expected = is_on_policy(name) ? "onpolicy" : "offpolicy";
    if (plain != expected) {
        throw SettingsError("type: got '" + kind + "'; " + changed(name, std::toupper) + " is '" + expected +
                            "'. Correct it or leave it out.");
    }
}

Json network_from(Section network) {
    const Json sizes = network.raw("hidden_sizes");
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

void add_spaces(Json& ours, Section& top, Section& parameters, const std::string& name) {
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
        if (continuous.count(name) > 0) {
            const auto bounds = [parts](double bound) {
                return std::vector<double>(static_cast<std::size_t>(parts), bound);
            };
            ours["action"] = Json{{"low", bounds(-limit)}, {"high", bounds(limit)}};
        } else {
            ours["action"] = parts;
        }
    }
}

void require_known(const std::string& name, const Json& found) {
    if (name != "ppo" && name != "dqn") {
        return;
    }
    const Words& known = name == "ppo" ? ppo_names : dqn_names;
    for (const auto& [key, value] : found.items()) {
        if (std::find(known.begin(), known.end(), key) != known.end()) {
            continue;
        }
        Words words(known);
        for (const auto& [old_name, new_name] : renamed) {
            words.push_back(old_name);
        }
        words.insert(words.end(), {"traj_per_epoch", "input_size", "act_dim", "buffer_size"});
        std::sort(words.begin(), words.end());
        throw SettingsError("algorithm_parameters." + key + ": " + changed(name, std::toupper) +
                            " has no such parameter" + did_you_mean(key, words) + ". Known: " + joined(words) + ".");
    }
}

/// The parameters of the algorithm, and of its buffer.
std::pair<Json, Json> parameters_from(Section& parameters, Section& training, const std::string& name,
                                      std::int64_t longest) {
    auto trajectories = parameters.whole("traj_per_epoch", 1);
    if (!trajectories) {
        trajectories = training.whole("traj_per_epoch", 1);
    }
    const auto batch_of_parameters = parameters.whole("batch_size", 1);
    const auto batch_of_training = training.whole("batch_size", 1);
    const auto batch = batch_of_training ? batch_of_training : batch_of_parameters;
    Json found = Json::object();
    for (Section* part : {&parameters, &training}) {
        const Json rest = part->rest();
        for (const auto& [key, value] : rest.items()) {
            const auto other = renamed.find(key);
            found[other == renamed.end() ? key : other->second] = value;
        }
    }
    for (const auto& [first, second] : {std::pair("lr", "critic_lr"), {"epochs", "critic_epochs"}}) {
        if (found.contains(second) && found.contains(first) && found[second] == found[first]) {
            found.erase(second);
        }
    }
    if (batch) {
        found[is_on_policy(name) ? "minibatch_size" : "batch_size"] = *batch;
    }
    Json size = found.value("buffer_size", Json());
    found.erase("buffer_size");
    if (trajectories && is_on_policy(name)) {
        found["episodes_per_update"] = *trajectories;
        size = size.is_null() ? Json(std::max(batch.value_or(1), *trajectories * longest)) : size;
    }
    require_known(name, found);
    return {found, size.is_null() ? Json() : Json{{"size", size}}};
}

}  // namespace

bool is_original(const Json& values) {
    return std::any_of(telling.begin(), telling.end(), [&](const std::string& name) { return values.contains(name); });
}

Json translate(const Json& values) {
    Section top(values);
    std::string name = top.text("algorithm_name");
    name = name.empty() ? top.text("algorithm") : name;
    name = name.empty() ? "ppo" : changed(name, std::tolower);
    if (std::find(algorithms.begin(), algorithms.end(), name) == algorithms.end()) {
        throw SettingsError("algorithm: got '" + name + "'; expected one of " + joined(algorithms) + ".");
    }
    Section parameters = top.section("algorithm_parameters");
    Section training = top.section("training");
    Section communication = top.section("communication");
    require_kind(top, name);
    const auto longest = top.whole("max_traj_length", 1);
    Json ours = Json::object();
    ours["client_id"] = top.raw("client_id");
    const std::string address = communication.text("server_address");
    ours["server"] = address.empty() ? top.raw("train_server_address") : Json(address);
    ours["timeout"] = first_of(communication.raw("timeout"), top.raw("timeout"));
    ours["send_frequency"] = first_of(communication.raw("send_frequency"), top.raw("send_frequency"));
    ours["max_segment_length"] = longest ? Json(*longest) : Json();
    ours["seed"] = first_of(parameters.raw("seed"), top.raw("seed"));
    ours["network"] = network_from(top.section("network_architecture"));
    add_spaces(ours, top, parameters, name);
    if (!ours["send_frequency"].is_null()) {
        ours["send_interval"] = 1.0;
    }
    const auto [algorithm, buffer] = parameters_from(parameters, training, name, longest.value_or(other_longest));
    ours["algorithm"] = Json{{"name", name}};
    ours["algorithm"].update(algorithm);
    ours["buffer"] = buffer;
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
