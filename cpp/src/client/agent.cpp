#include "rl4sys/agent.hpp"

#include <utility>

#include "client/core.hpp"
#include "client/grpc_transport.hpp"
#include "client/section.hpp"
#include "rl4sys/log.hpp"

namespace rl4sys {

Episode::Episode(std::shared_ptr<client::Core> core, client::Lane& lane, std::uint64_t number)
    : core_(std::move(core)), lane_(&lane), number_(number) {}

Episode& Episode::operator=(Episode&& other) noexcept {
    Episode moved(std::move(other));
    std::swap(core_, moved.core_);
    std::swap(lane_, moved.lane_);
    std::swap(number_, moved.number_);
    return *this;
}

Episode::~Episode() {
    if (core_ && !core_->is_forked()) {
        try {
            end({}, Ending::Truncated);
        } catch (const std::exception& error) {
            log(LogLevel::Error, std::string("An episode could not be ended: ") + error.what());
        }
    }
}

Action Episode::act(const Observation& observation, ArrayView mask) noexcept {
    return lane_->act(number_, observation, mask);
}

void Episode::reward(double value) {
    lane_->reward(number_, value, std::nullopt);
}

void Episode::reward(double value, std::int64_t decision) {
    lane_->reward(number_, value, decision);
}

void Episode::end(const Observation& final_observation, Ending ending, ArrayView mask) {
    core_->end(*lane_, number_, final_observation, ending, mask);
}

std::int64_t Episode::decision() const noexcept {
    return lane_->decision(number_);
}

bool Episode::ended() const noexcept {
    return lane_->ended(number_);
}

Agent::Agent(std::shared_ptr<client::Core> core) : core_(std::move(core)) {}

Agent& Agent::operator=(Agent&& other) noexcept {
    Agent moved(std::move(other));
    std::swap(core_, moved.core_);
    return *this;
}

Agent::~Agent() {
    close();
}

Episode Agent::episode() {
    const auto [lane, number] = core_->episode();
    return {core_, *lane, number};
}

Health Agent::health() const {
    return core_->health();
}

bool Agent::flush(double timeout) {
    return core_->flush(timeout);
}

void Agent::close(double timeout) noexcept {
    if (!core_ || core_->is_forked()) {
        return;
    }
    try {
        core_->close(timeout);
    } catch (const std::exception& error) {
        log(LogLevel::Error, std::string("The agent could not be closed in order: ") + error.what());
    }
}

bool Agent::has_policy() const noexcept {
    return core_->has_policy();
}

const ClientSettings& Agent::settings() const noexcept {
    return core_->settings();
}

Agent client::connect_over(const ClientSettings& settings, std::shared_ptr<wire::Transport> transport,
                           Fallback fallback, const Start& start) {
    const bool has_fallback = fallback != nullptr;
    auto core = std::make_shared<Core>(settings, std::move(transport), start, std::move(fallback));
    core->run();
    Agent agent(core);
    const auto refused = core->wait_for_policy(settings.timeout);
    if (!core->has_policy() && !refused) {
        core->use_cached_policy();
    }
    if (!refused && (core->has_policy() || has_fallback)) {
        return agent;
    }
    const std::string last_error = core->last_error();
    agent.close(0.0);
    if (refused) {
        throw ConnectError("The server " + settings.server + " refuses client '" + settings.client_id +
                           "': " + *refused);
    }
    throw ConnectError("No answer from the server " + settings.server + " within " + shown(settings.timeout) + " s" +
                       (last_error.empty() ? "" : " (" + last_error + ")") +
                       ". Start it with `rl4sys serve`, correct `server` in the config, or let the system start "
                       "without it: give `cache: DIR` or a fallback.");
}

Agent connect(const ClientSettings& settings, Fallback fallback) {
    return client::connect_over(settings, client::grpc_transport(settings), std::move(fallback),
                                client::fresh_start(settings));
}

Agent connect(const std::filesystem::path& file, Fallback fallback) {
    return connect(load_settings(file), std::move(fallback));
}

}  // namespace rl4sys
