#include "client/connection.hpp"

#include <utility>

#include "client/absent_transport.hpp"
#include "client/grpc_library.hpp"
#include "client/grpc_transport.hpp"
#include "client/section.hpp"
#include "client/settings_check.hpp"

namespace rl4sys {

Agent client::connect_over(const ClientSettings& settings, std::shared_ptr<wire::Transport> transport,
                           Fallback fallback, const Start& start) {
    const bool has_fallback = fallback != nullptr;
    auto core = std::make_shared<Core>(settings, std::move(transport), start, std::move(fallback));
    core->run();
    Agent agent(core);
    const auto refused = core->wait_for_policy(settings.timeout, has_fallback);
    if (!refused) {
        core->use_cached_policy();
    }
    if (!refused && (core->has_policy() || has_fallback)) {
        return agent;
    }
    const std::string last_error = core->last_error();
    const std::optional<Reach> reach = core->reach();
    agent.close(0.0);
    if (refused) {
        throw ConnectError("The server " + settings.server + " refuses client '" + settings.client_id +
                           "': " + *refused);
    }
    const std::string otherwise = "or let the system start without it: give `cache: DIR` or a fallback.";
    const std::string within = " within " + shown(settings.timeout) + " s";
    if (reach == Reach::Answered) {
        throw ConnectError("The server " + settings.server + " had no policy for client '" + settings.client_id + "'" +
                           within + ": " + last_error + " See `rl4sys status " + settings.server + "`, " + otherwise);
    }
    throw ConnectError("No answer from the server " + settings.server + within +
                       (last_error.empty() ? "" : " (" + last_error + ")") +
                       ". Start it with `rl4sys serve`, correct `server` in the config, " + otherwise);
}

Agent connect(const ClientSettings& given, Fallback fallback) {
    const ClientSettings settings = client::checked(given);
    if (client::inherits_grpc()) {
        if (!fallback && !settings.cache) {
            throw ConnectError(client::explain_inherited_grpc());
        }
        return client::connect_over(settings, client::absent_transport(client::explain_inherited_grpc()),
                                    std::move(fallback), client::fresh_start(settings));
    }
    return client::connect_over(settings, client::grpc_transport(settings), std::move(fallback),
                                client::fresh_start(settings));
}

Agent connect(const std::filesystem::path& file, Fallback fallback) {
    return connect(load_settings(file), std::move(fallback));
}

}  // namespace rl4sys
