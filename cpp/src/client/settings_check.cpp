#include "client/settings_check.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "wire/port_range.hpp"

namespace rl4sys::client {
namespace {

constexpr std::size_t longest_name = 128;

bool is_plain(char letter) {
    return (letter >= 'A' && letter <= 'Z') || (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9') ||
           letter == '_' || letter == '-';
}

std::string require_name(const std::string& what, const std::string& name) {
    const bool harmless = name.size() <= longest_name && (name.empty() || name[0] != '.') &&
                          std::all_of(name.begin(), name.end(), [](char c) { return is_plain(c) || c == '.'; });
    if (!harmless) {
        throw SettingsError(what + " is '" + name.substr(0, 64) +
                            "'; expected 1 to 128 letters (A-Z, a-z), digits, dots, underscores or hyphens, and no dot "
                            "in front. Choose another name.");
    }
    return name;
}

/// The host name, which names a client without a client_id.
std::string host() {
    std::array<char, 256> name{};
    if (::gethostname(name.data(), name.size() - 1) != 0) {
        return "client";
    }
    std::string text(name.data());
    std::replace_if(
        text.begin(), text.end(), [](char c) { return !is_plain(c) && c != '.'; }, '-');
    text.erase(0, std::min(text.find_first_not_of('.'), text.size()));
    return text;
}

bool stays_here(const std::string& server) {
    const auto starts = [&](const char* with) { return server.rfind(with, 0) == 0; };
    // A name such as 127.example.org is that of another machine.
    const bool is_loopback = starts("127.") && server.find_first_not_of("0123456789.:") == std::string::npos;
    return starts("unix:") || starts("localhost:") || starts("[::1]:") || is_loopback;
}

/// gRPC would read a missing port as 443, and one that is too large as another.
void require_address(const std::string& server) {
    constexpr std::size_t longest_port = 5;
    constexpr int largest_port = 65535;
    if (server.rfind("unix:", 0) == 0) {
        return;
    }
    const std::size_t colon = server.rfind(':');
    const std::string port = colon == std::string::npos ? "" : server.substr(colon + 1);
    const bool is_number =
        !port.empty() && port.size() <= longest_port && port.find_first_not_of("0123456789") == std::string::npos;
    const int number = is_number ? std::stoi(port) : 0;
    if (colon == 0 || number < 1 || number > largest_port) {
        throw SettingsError("server: got '" + server +
                            "'; expected host:port, such as 127.0.0.1:50051, host:first-last for a server of several "
                            "processes, or unix:/path.");
    }
}

void require_consistent(const ClientSettings& settings) {
    if (!settings.algorithm.empty() && !settings.experiment.empty()) {
        throw SettingsError("algorithm and experiment are both given; name an experiment, or describe an algorithm.");
    }
    if (settings.server.rfind("inproc:", 0) == 0) {
        throw SettingsError("server: got '" + settings.server +
                            "', which is for Python clients within the server's process; give `host:port` or "
                            "`unix:/path/of/socket`.");
    }
    require_address(settings.server);
    const bool has_token = !settings.token.empty() || settings.token_file;
    if (has_token && !settings.tls && !settings.insecure && !stays_here(settings.server)) {
        throw SettingsError("server: the token would be sent to " + settings.server +
                            " unencrypted. Add `tls: {ca: FILE}`, or `insecure: true` if the network itself is safe.");
    }
}

}  // namespace

ClientSettings checked(ClientSettings settings) {
    settings.client_id = require_name("client_id", settings.client_id.empty() ? host() : settings.client_id);
    settings.policy_id = require_name("policy_id", settings.policy_id);
    settings.server = wire::own_address(settings.server, wire::learner_name(settings.client_id, settings.policy_id));
    require_consistent(settings);
    return settings;
}

}  // namespace rl4sys::client
