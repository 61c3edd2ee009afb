#include "client/original_parameters.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <set>

namespace rl4sys::client {
namespace {

using Words = std::vector<std::string>;
using Names = std::map<std::string, std::string>;

const Words algorithms{"ppo", "dqn", "ddpg", "td3", "sac", "sql"};
const std::set<std::string> continuous{"ddpg", "td3", "sac", "sql"};
// Algorithms that the original lists. Here PPO takes the place of those on-policy, DQN that of C51.
const std::set<std::string> only_named{"a2c", "a3c", "c51", "reinforce", "rpo", "trpo"};

const Names renamed_in_all{{"learning_rate", "lr"},
                           {"pi_lr", "lr"},
                           {"q_lr", "lr"},
                           {"vf_lr", "critic_lr"},
                           {"clip_grad_norm", "max_grad_norm"},
                           {"buf_size", "buffer_size"}};
const Names renamed_on_policy{{"lam", "gae_lambda"},
                              {"train_pi_iters", "epochs"},
                              {"update_epochs", "epochs"},
                              {"train_v_iters", "critic_epochs"},
                              {"clip_coef", "clip_ratio"},
                              {"ent_coef", "entropy_coef"},
                              {"vf_coef", "value_coef"},
                              {"value_loss_coef", "value_coef"},
                              {"norm_adv", "normalize_advantage"},
                              {"num_steps", "buffer_size"}};
const Names renamed_off_policy{{"tau", "polyak"},
                               {"start_e", "epsilon_start"},
                               {"epsilon", "epsilon_start"},
                               {"end_e", "epsilon_end"},
                               {"epsilon_min", "epsilon_end"},
                               {"target_network_frequency", "target_update_interval"},
                               {"target_net_update_frequency", "target_update_interval"},
                               {"target_update_freq", "target_update_interval"},
                               {"target_update", "target_update_interval"},
                               {"train_update_freq", "train_frequency"},
                               {"train_q_iters", "train_iters"},
                               {"policy_frequency", "policy_delay"},
                               {"noise_scale", "exploration_std"},
                               {"exploration_noise", "exploration_std"},
                               {"policy_noise", "target_noise"},
                               {"noise_clip", "target_noise_clip"}};
// Names that are read and mean nothing here, or are used to translate others.
const Words no_effect{"discrete",      "log_std_min", "log_std_max", "total_timesteps", "total_timesteps_anneal_lr",
                      "traj_per_epoch"};
const Words ppo_names{"gamma",          "lr",
                      "critic_lr",      "anneal_lr",
                      "gae_lambda",     "clip_ratio",
                      "epochs",         "critic_epochs",
                      "minibatch_size", "episodes_per_update",
                      "value_coef",     "entropy_coef",
                      "clip_value",     "max_grad_norm",
                      "target_kl",      "normalize_advantage",
                      "log_std_init",   "max_age",
                      "max_importance", "imitate",
                      "center_rewards", "horizon",
                      "optimizer",      "schedules",
                      "shared_trunk"};
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
                      "sequence_length",
                      "burn_in",
                      "max_grad_norm",
                      "imitate",
                      "center_rewards",
                      "horizon",
                      "optimizer",
                      "schedules"};
// Most bytes of observations that a batch of PPO may hold, whatever `traj_per_epoch` times `max_traj_length` is.
constexpr std::int64_t most_bytes = std::int64_t{256} << 20;

Names renamed_for(const std::string& name) {
    Names names = renamed_in_all;
    const Names& more = is_on_policy(name) ? renamed_on_policy : renamed_off_policy;
    names.insert(more.begin(), more.end());
    return names;
}

/// Take a value out of an object; null if it is absent.
Json pop(Json& found, const std::string& key) {
    Json value = found.value(key, Json());
    found.erase(key);
    return value;
}

void translate_on_policy(Json& found) {
    if (const Json clip = pop(found, "clip_vloss"); !clip.is_null()) {
        found["clip_value"] = clip == Json(true) ? found.value("clip_ratio", Json(0.2)) : Json();
    }
}

/// Steps of exploration: a fraction of all steps, or those after which a decaying epsilon has reached its end.
void translate_exploration(Json& found) {
    const Json total = pop(found, "total_timesteps");
    const Json fraction = found.value("exploration_fraction", Json());
    if (total.is_number() && fraction.is_number()) {
        const double steps = std::nearbyint(total.get<double>() * fraction.get<double>());
        found["exploration_steps"] = static_cast<std::int64_t>(std::max(1.0, steps));
    }
    const Json decay = pop(found, "epsilon_decay");
    const double rate = decay.is_number_float() ? decay.get<double>() : 0.0;
    const Json first = found.value("epsilon_start", Json(1.0));
    const Json last = found.value("epsilon_end", Json(0.01));
    if (rate <= 0.0 || rate >= 1.0 || found.contains("exploration_steps") || !first.is_number() || !last.is_number()) {
        return;
    }
    const double start = first.get<double>();
    const double end = last.get<double>();
    if (start > end && end > 0.0) {
        const double steps = rate > 0.5 ? std::log(end / start) / std::log(rate) : (start - end) / rate;
        found["exploration_steps"] = static_cast<std::int64_t>(std::ceil(steps));
    }
}

void translate_off_policy(Json& found, const std::string& name) {
    if (const Json polyak = found.value("polyak", Json());
        polyak.is_number_float() && polyak.get<double>() > 0.5 && polyak.get<double>() < 1.0) {
        // The share of the old target, as Spinning Up counts it.
        found["polyak"] = 1.0 - polyak.get<double>();
    }
    const Json rounds = pop(found, "train_iters");
    if (name == "dqn") {
        if (!rounds.is_null()) {
            found["gradient_steps"] = rounds;
        }
        translate_exploration(found);
        return;
    }
    if (const Json every = found.value("train_frequency", Json(1)); rounds.is_number() && every.is_number()) {
        found["updates_per_step"] = std::min(1.0, rounds.get<double>() / every.get<double>());
    }
    if (name == "ddpg" && found.value("policy_delay", Json()) == Json(1)) {
        found.erase("policy_delay");
    }
    const Json alpha = pop(found, "alpha");
    const Json adapts = pop(found, "adaptive_alpha");
    if (!alpha.is_null()) {
        found[adapts == Json(true) ? "initial_temperature" : "temperature"] = alpha;
    } else if (adapts == Json(true)) {
        found["temperature"] = "auto";
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
        for (const auto& [old_name, new_name] : renamed_for(name)) {
            words.push_back(old_name);
        }
        words.insert(words.end(), {"traj_per_epoch", "input_size", "act_dim", "buffer_size"});
        std::sort(words.begin(), words.end());
        throw SettingsError("algorithm_parameters." + key + ": " + upper(name) + " has no such parameter" +
                            did_you_mean(key, words) + ". Known: " + joined(words) + ".");
    }
}

}  // namespace

std::string lower(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
    return text;
}

std::string upper(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::toupper(c); });
    return text;
}

bool is_on_policy(const std::string& name) {
    return name == "ppo";
}

bool is_continuous(const std::string& original) {
    return original == "ppo_continuous" || continuous.count(original) > 0;
}

std::string algorithm_of(const std::string& original) {
    std::string name = lower(original);
    name = name == "ppo_continuous" ? "ppo" : name;
    if (only_named.count(name) > 0) {
        throw SettingsError("algorithm_name: '" + original + "' is only a name here; use " +
                            (name == "c51" ? "DQN" : "PPO") + " in its place.");
    }
    if (std::find(algorithms.begin(), algorithms.end(), name) == algorithms.end()) {
        throw SettingsError("algorithm_name: got '" + original + "'; expected one of " + joined(algorithms) +
                            did_you_mean(name, algorithms) + ".");
    }
    return name;
}

Translated translate_parameters(Section& parameters, Section& training, const std::string& name, std::int64_t longest,
                                std::optional<std::int64_t> width) {
    const Names renamed = renamed_for(name);
    Json found = Json::object();
    for (Section* part : {&parameters, &training}) {
        const Json rest = part->rest();
        for (const auto& [key, value] : rest.items()) {
            const auto other = renamed.find(key);
            found[other == renamed.end() ? key : other->second] = value;
        }
    }
    Section numbers(found, "algorithm_parameters");
    const auto trajectories = numbers.whole("traj_per_epoch", 1);
    auto batch = numbers.whole("batch_size", 1);
    found.erase("batch_size");
    for (const auto& [first, second] : {std::pair("lr", "critic_lr"), {"epochs", "critic_epochs"}}) {
        if (found.contains(second) && found.contains(first) && found[second] == found[first]) {
            found.erase(second);
        }
    }
    if (found.contains("max_grad_norm") && found["max_grad_norm"] == Json(0)) {
        found["max_grad_norm"] = nullptr;
    }
    Json size = pop(found, "buffer_size");
    const Json hidden = pop(found, "hidden_size");
    if (is_on_policy(name)) {
        translate_on_policy(found);
        const Json count = pop(found, "num_minibatches");
        if (!batch && size.is_number_integer() && count.is_number_integer() && count.get<std::int64_t>() > 0) {
            batch = std::max<std::int64_t>(1, size.get<std::int64_t>() / count.get<std::int64_t>());
        }
        if (trajectories) {
            found["episodes_per_update"] = *trajectories;
            const std::int64_t most = most_bytes / (4 * width.value_or(1));
            size = size.is_null() ? Json(std::max(batch.value_or(1), std::min(*trajectories * longest, most))) : size;
        }
    } else {
        translate_off_policy(found, name);
    }
    if (batch) {
        found[is_on_policy(name) ? "minibatch_size" : "batch_size"] = *batch;
    }
    for (const std::string& key : no_effect) {
        found.erase(key);
    }
    require_known(name, found);
    return {found, size.is_null() ? Json() : Json{{"size", size}},
            hidden.is_null() ? Json() : Json::array({hidden, hidden})};
}

}  // namespace rl4sys::client
