#include "client/connection.hpp"

#include <utility>

#include "client/grpc_transport.hpp"
#include "client/section.hpp"

namespace rl4sys {

Agent client::connect_over(const ClientSettings& settings, std::shared_ptr<wire::Transport> transport,
                           Fallback fallback, const Start& start) {
    const bool has_fallback = fallback != nullptr;
    auto core = std::make_shared<Core>(settings, std::move(transport), start, std::move(fallback));
    core->run();
    Agent agent(core);
    const auto refused = core->wait_for_policy(settings.timeout);
    if (!refused) {
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
