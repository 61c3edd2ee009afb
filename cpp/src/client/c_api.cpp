#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstring>
#include <exception>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rl4sys/agent.hpp"
#include "rl4sys/log.hpp"
#include "rl4sys/rl4sys.h"

struct rl4sys_agent {
    rl4sys::Agent agent;
};

struct rl4sys_episode {
    explicit rl4sys_episode(rl4sys::Episode begun) : episode(std::move(begun)) {}

    std::optional<double> time() const {
        const double told = now.load(std::memory_order_relaxed);
        return std::isnan(told) ? std::nullopt : std::optional(told);
    }

    rl4sys::Episode episode;
    std::atomic<double> now = std::numeric_limits<double>::quiet_NaN();  ///< NaN before `rl4sys_now`.
};

namespace {

using rl4sys::Observation;

thread_local std::string last_error;

rl4sys_status failed(rl4sys_status status, const char* message) {
    last_error = message;
    return status;
}

/// Run `work`; an exception becomes a status.
template <typename Work>
rl4sys_status guarded(const Work& work) noexcept {
    try {
        return work();
    } catch (const rl4sys::SettingsError& error) {
        return failed(RL4SYS_BAD_SETTINGS, error.what());
    } catch (const rl4sys::ConnectError& error) {
        return failed(RL4SYS_NOT_CONNECTED, error.what());
    } catch (const std::invalid_argument& error) {
        return failed(RL4SYS_BAD_ARGUMENT, error.what());
    } catch (const std::logic_error& error) {
        return failed(RL4SYS_ENDED, error.what());
    } catch (const std::exception& error) {
        return failed(RL4SYS_FAILED, error.what());
    } catch (...) {
        return failed(RL4SYS_FAILED, "Something was thrown that is not a std::exception.");
    }
}

rl4sys_status missing() {
    return failed(RL4SYS_BAD_ARGUMENT, "A pointer that must not be NULL is.");
}

/// Copy as much of a text as fits.
template <size_t Size>
void fill(char (&target)[Size], const std::string& text) {
    target[text.copy(target, Size - 1)] = '\0';
}

rl4sys::ArrayView view_of(const rl4sys_array& array) {
    return {array.data, array.size, static_cast<rl4sys::ElementType>(array.type)};
}

/// Named arrays; a few need no allocation.
class NamedArrays {
public:
    NamedArrays(const rl4sys_array* arrays, size_t count)
        : size_(count), is_one_(count == 1 && arrays[0].name == nullptr) {
        if (count > few_.size()) {
            many_.resize(count);
        }
        for (size_t place = 0; place < count; ++place) {
            const char* name = arrays[place].name;
            parts()[place] = {name == nullptr ? "" : name, view_of(arrays[place])};
        }
    }

    Observation observation() {
        if (size_ == 0) {
            return {};
        }
        return is_one_ ? Observation(parts()[0].array) : Observation(parts(), size_);
    }

private:
    rl4sys::NamedArray* parts() { return many_.empty() ? few_.data() : many_.data(); }

    size_t size_;
    bool is_one_;
    std::array<rl4sys::NamedArray, 16> few_;
    std::vector<rl4sys::NamedArray> many_;
};

/// An observation as arrays of C.
class PlainArrays {
public:
    /// A mask that was given comes last, as the array "action_mask".
    PlainArrays(const Observation& observation, rl4sys::ArrayView mask) {
        names_.reserve(observation.size());
        for (const rl4sys::NamedArray& part : observation) {
            names_.emplace_back(part.name);
            arrays_.push_back({names_.back().empty() ? nullptr : names_.back().c_str(), part.array.data(),
                               part.array.size(), static_cast<rl4sys_type>(part.array.type())});
        }
        if (mask.given()) {
            arrays_.push_back({"action_mask", mask.data(), mask.size(), static_cast<rl4sys_type>(mask.type())});
        }
    }

    const rl4sys_array* data() const { return arrays_.data(); }
    size_t size() const { return arrays_.size(); }

private:
    std::vector<std::string> names_;
    std::vector<rl4sys_array> arrays_;
};

rl4sys::FallbackAction action_of(const rl4sys_fallback_action& action) {
    return {std::vector<int64_t>(action.choices, action.choices + action.choice_count),
            std::vector<float>(action.numbers, action.numbers + action.number_count)};
}

rl4sys::Fallback fallback_of(rl4sys_fallback fallback, void* context) {
    if (fallback == nullptr) {
        return nullptr;
    }
    return [fallback, context](const Observation& observation, rl4sys::ArrayView mask) {
        const PlainArrays arrays(observation, mask);
        return rl4sys::FallbackAction(fallback(arrays.data(), arrays.size(), context));
    };
}

rl4sys::Fallback fallback_of(rl4sys_action_fallback fallback, void* context) {
    if (fallback == nullptr) {
        return nullptr;
    }
    return [fallback, context](const Observation& observation, rl4sys::ArrayView mask) {
        const PlainArrays arrays(observation, mask);
        rl4sys_fallback_action action{};
        if (const int code = fallback(arrays.data(), arrays.size(), &action, context); code != 0) {
            throw std::runtime_error("it returned " + std::to_string(code));
        }
        return action_of(action);
    };
}

rl4sys_status status_of(const rl4sys::Action& action) {
    switch (action.problem()) {
        case rl4sys::Problem::None: return RL4SYS_OK;
        case rl4sys::Problem::BadObservation: return failed(RL4SYS_BAD_ARGUMENT, action.message().c_str());
        case rl4sys::Problem::NothingAllowed: return failed(RL4SYS_NOTHING_ALLOWED, action.message().c_str());
        case rl4sys::Problem::EpisodeEnded: return failed(RL4SYS_ENDED, action.message().c_str());
        case rl4sys::Problem::Forked: return failed(RL4SYS_FORKED, action.message().c_str());
        case rl4sys::Problem::PolicyOff: return failed(RL4SYS_POLICY_OFF, action.message().c_str());
        case rl4sys::Problem::FallbackFailed: return failed(RL4SYS_FALLBACK_FAILED, action.message().c_str());
        case rl4sys::Problem::BadTime: return failed(RL4SYS_BAD_ARGUMENT, action.message().c_str());
        case rl4sys::Problem::Failed: break;
    }
    return failed(RL4SYS_FAILED, action.message().c_str());
}

rl4sys_status answer(const rl4sys::Action& decided, rl4sys_action* action) {
    if (!decided) {
        return status_of(decided);
    }
    *action = {decided.choice(),       decided.choices(),     decided.numbers(),
               decided.size(),         decided.decision(),    decided.is_fallback() ? 1 : 0,
               decided.choice_count(), decided.number_count()};
    return RL4SYS_OK;
}

rl4sys_status end(rl4sys_episode* episode, const Observation& observation, rl4sys_ending ending) {
    episode->episode.end(observation,
                         ending == RL4SYS_TERMINATED ? rl4sys::Ending::Terminated : rl4sys::Ending::Truncated, {},
                         episode->time());
    return RL4SYS_OK;
}

rl4sys_status connected(rl4sys::Agent agent, rl4sys_agent** result) {
    *result = std::make_unique<rl4sys_agent>(rl4sys_agent{std::move(agent)}).release();
    return RL4SYS_OK;
}

template <typename AnyFallback>
rl4sys_status connect_file(const char* path, AnyFallback fallback, void* context, rl4sys_agent** agent) {
    return guarded([&] {
        if (path == nullptr || agent == nullptr) {
            return missing();
        }
        return connected(rl4sys::connect(std::filesystem::path(path), fallback_of(fallback, context)), agent);
    });
}

template <typename AnyFallback>
rl4sys_status connect_text(const char* settings, AnyFallback fallback, void* context, rl4sys_agent** agent) {
    return guarded([&] {
        if (settings == nullptr || agent == nullptr) {
            return missing();
        }
        return connected(rl4sys::connect(rl4sys::parse_settings(settings), fallback_of(fallback, context)), agent);
    });
}

rl4sys_status fill_health(const rl4sys_agent* agent, rl4sys_health* health) {
    return guarded([&] {
        const rl4sys::Health now = agent->agent.health();
        health->connected = now.connected ? 1 : 0;
        health->version = now.version ? static_cast<int64_t>(*now.version) : -1;
        health->age = now.age.value_or(-1.0);
        health->decisions = now.decisions;
        health->fallback_decisions = now.fallback_decisions;
        health->unanswered_decisions = now.unanswered_decisions;
        health->incumbent_decisions = now.incumbent_decisions;
        health->open_episodes = now.open_episodes;
        health->backlog = now.backlog;
        health->backlog_bytes = now.backlog_bytes;
        health->acknowledged = now.acknowledged;
        for (const auto& [reason, count] : now.drops) {
            health->drops += count;
        }
        health->late_rewards = now.late_rewards;
        health->damaged_patches = now.damaged_patches;
        health->bad_inputs = now.bad_inputs;
        health->defaulted_inputs = now.defaulted_inputs;
        health->stopped = now.stopped.empty() ? 0 : 1;
        fill(health->mode, now.mode);
        fill(health->off, now.off);
        fill(health->control, now.control);
        health->control_sequence = now.control_sequence;
        health->record_share = now.record_share;
        health->observed_decisions = now.observed_decisions;
        health->agreed_decisions = now.agreed_decisions;
        std::copy_n(now.decision_time.begin(), std::min<size_t>(now.decision_time.size(), RL4SYS_TIME_BUCKETS),
                    health->decision_time);
        health->versions_not_taken = now.versions_not_taken;
        health->thinned_episodes = now.thinned_episodes;
        health->unrecorded_decisions = now.unrecorded_decisions;
        fill(health->lineage, now.lineage);
        fill(health->lineage_problem, now.lineage_problem);
        fill(health->warning, now.warning);
        fill(health->last_error, now.last_error);
        fill(health->stopped_because, now.stopped);
        fill(health->runtime, now.runtime);
        return RL4SYS_OK;
    });
}

}  // namespace

const char* rl4sys_version(void) {
    return RL4SYS_VERSION;
}

void rl4sys_log_to(rl4sys_log_sink sink, rl4sys_log_level least, void* context) {
    guarded([&] {
        if (sink == nullptr) {
            rl4sys::log_to(nullptr);
            return RL4SYS_OK;
        }
        rl4sys::log_to(
            [sink, context](rl4sys::LogLevel level, std::string_view message) {
                sink(static_cast<rl4sys_log_level>(level), std::string(message).c_str(), context);
            },
            static_cast<rl4sys::LogLevel>(std::clamp<int>(least, RL4SYS_DEBUG, RL4SYS_ERROR)));
        return RL4SYS_OK;
    });
}

const char* rl4sys_last_error(void) {
    return last_error.c_str();
}

rl4sys_status rl4sys_connect(const char* config_path, rl4sys_fallback fallback, void* context, rl4sys_agent** agent) {
    return connect_file(config_path, fallback, context, agent);
}

rl4sys_status rl4sys_connect_json(const char* settings, rl4sys_fallback fallback, void* context, rl4sys_agent** agent) {
    return connect_text(settings, fallback, context, agent);
}

rl4sys_status rl4sys_connect_action(const char* config_path, rl4sys_action_fallback fallback, void* context,
                                    rl4sys_agent** agent) {
    return connect_file(config_path, fallback, context, agent);
}

rl4sys_status rl4sys_connect_action_json(const char* settings, rl4sys_action_fallback fallback, void* context,
                                         rl4sys_agent** agent) {
    return connect_text(settings, fallback, context, agent);
}

rl4sys_status rl4sys_flush(rl4sys_agent* agent, double timeout) {
    return guarded([&] {
        if (agent == nullptr) {
            return missing();
        }
        return agent->agent.flush(timeout)
                   ? RL4SYS_OK
                   : failed(RL4SYS_TIMEOUT, "The server did not acknowledge everything in time.");
    });
}

rl4sys_status rl4sys_get_health_sized(const rl4sys_agent* agent, rl4sys_health* health, size_t size) {
    rl4sys_health whole{};
    if (agent == nullptr || health == nullptr || size == 0) {
        return missing();
    }
    const rl4sys_status status = fill_health(agent, &whole);
    if (status == RL4SYS_OK) {
        std::memset(health, 0, size);
        std::memcpy(health, &whole, std::min(size, sizeof whole));
    }
    return status;
}

rl4sys_status rl4sys_get_health(const rl4sys_agent* agent, rl4sys_health* health) {
    return rl4sys_get_health_sized(agent, health, sizeof(rl4sys_health));
}

uint64_t rl4sys_drops(const rl4sys_agent* agent, const char* reason) {
    uint64_t count = 0;
    guarded([&] {
        if (agent == nullptr || reason == nullptr) {
            return missing();
        }
        const rl4sys::Health now = agent->agent.health();
        const auto found = now.drops.find(reason);
        count = found == now.drops.end() ? 0 : found->second;
        return RL4SYS_OK;
    });
    return count;
}

void rl4sys_close(rl4sys_agent* agent, double timeout) {
    const std::unique_ptr<rl4sys_agent> owned(agent);
    if (owned) {
        owned->agent.close(timeout);
    }
}

rl4sys_status rl4sys_episode_begin(rl4sys_agent* agent, rl4sys_episode** episode) {
    return guarded([&] {
        if (agent == nullptr || episode == nullptr) {
            return missing();
        }
        *episode = std::make_unique<rl4sys_episode>(agent->agent.episode()).release();
        return RL4SYS_OK;
    });
}

void rl4sys_episode_free(rl4sys_episode* episode) {
    const std::unique_ptr<rl4sys_episode> owned(episode);
}

rl4sys_status rl4sys_act(rl4sys_episode* episode, const float* observation, size_t size, const uint8_t* mask,
                         size_t mask_size, rl4sys_action* action) {
    return guarded([&] {
        if (episode == nullptr || observation == nullptr || action == nullptr) {
            return missing();
        }
        const rl4sys::ArrayView allowed = mask == nullptr ? rl4sys::ArrayView() : rl4sys::ArrayView(mask, mask_size);
        return answer(episode->episode.act(Observation(observation, size), allowed, episode->time()), action);
    });
}

rl4sys_status rl4sys_act_arrays(rl4sys_episode* episode, const rl4sys_array* observation, size_t arrays,
                                rl4sys_action* action) {
    return guarded([&] {
        if (episode == nullptr || observation == nullptr || action == nullptr) {
            return missing();
        }
        NamedArrays named(observation, arrays);
        return answer(episode->episode.act(named.observation(), {}, episode->time()), action);
    });
}

rl4sys_status rl4sys_act_many(rl4sys_episode* const* episodes, size_t count, const float* observations, size_t size,
                              const uint8_t* masks, size_t mask_size, rl4sys_action* actions, rl4sys_status* statuses) {
    if (count > 0 && (episodes == nullptr || observations == nullptr || actions == nullptr)) {
        return missing();
    }
    rl4sys_status first = RL4SYS_OK;
    std::string message;
    for (size_t row = 0; row < count; ++row) {
        const uint8_t* mask = masks == nullptr ? nullptr : masks + row * mask_size;
        const rl4sys_status status =
            rl4sys_act(episodes[row], observations + row * size, size, mask, mask_size, &actions[row]);
        if (statuses != nullptr) {
            statuses[row] = status;
        }
        if (status != RL4SYS_OK && first == RL4SYS_OK) {
            first = status;
            message = last_error;
        }
    }
    return first == RL4SYS_OK ? first : failed(first, message.c_str());
}

rl4sys_status rl4sys_now(rl4sys_episode* episode, double now) {
    if (episode == nullptr) {
        return missing();
    }
    if (!std::isfinite(now)) {
        return failed(RL4SYS_BAD_ARGUMENT, "Got a time that is not finite; expected seconds of a steady clock.");
    }
    episode->now.store(now, std::memory_order_relaxed);
    return RL4SYS_OK;
}

rl4sys_status rl4sys_took(rl4sys_episode* episode, const rl4sys_array* observation, size_t arrays, int64_t choice) {
    const rl4sys_fallback_action action{&choice, 1, nullptr, 0};
    return rl4sys_took_action(episode, observation, arrays, &action);
}

rl4sys_status rl4sys_took_action(rl4sys_episode* episode, const rl4sys_array* observation, size_t arrays,
                                 const rl4sys_fallback_action* action) {
    return guarded([&] {
        if (episode == nullptr || observation == nullptr || action == nullptr) {
            return missing();
        }
        NamedArrays named(observation, arrays);
        episode->episode.took(named.observation(), action_of(*action), {}, episode->time());
        return RL4SYS_OK;
    });
}

rl4sys_status rl4sys_action_part(const rl4sys_agent* agent, const rl4sys_action* action, const char* path,
                                 rl4sys_part* part) {
    return guarded([&] {
        if (agent == nullptr || action == nullptr || path == nullptr || part == nullptr) {
            return missing();
        }
        const auto& structure = agent->agent.settings().action_structure;
        const rl4sys::ActionPart* found = structure ? structure->find(path) : nullptr;
        if (found == nullptr) {
            return failed(RL4SYS_BAD_ARGUMENT, "The action has no such part. Name it as in the setting `action`.");
        }
        *part = {found->is_choice ? action->choices + found->at : nullptr,
                 found->is_choice ? nullptr : action->numbers + found->at, found->size};
        return RL4SYS_OK;
    });
}

rl4sys_status rl4sys_reward(rl4sys_episode* episode, double value) {
    return guarded([&] {
        if (episode == nullptr) {
            return missing();
        }
        episode->episode.reward(value);
        return RL4SYS_OK;
    });
}

rl4sys_status rl4sys_reward_decision(rl4sys_episode* episode, double value, int64_t decision) {
    return guarded([&] {
        if (episode == nullptr) {
            return missing();
        }
        episode->episode.reward(value, decision);
        return RL4SYS_OK;
    });
}

rl4sys_status rl4sys_end(rl4sys_episode* episode, const float* observation, size_t size, rl4sys_ending ending) {
    return guarded([&] {
        if (episode == nullptr) {
            return missing();
        }
        return end(episode, observation == nullptr ? Observation() : Observation(observation, size), ending);
    });
}

rl4sys_status rl4sys_end_arrays(rl4sys_episode* episode, const rl4sys_array* observation, size_t arrays,
                                rl4sys_ending ending) {
    return guarded([&] {
        if (episode == nullptr || (observation == nullptr && arrays > 0)) {
            return missing();
        }
        NamedArrays named(observation, arrays);
        return end(episode, named.observation(), ending);
    });
}
