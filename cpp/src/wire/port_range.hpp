/// Servers of several processes: a range of ports, and the rule by which learners are divided among them.
#pragma once

#include <cstdint>
#include <string>

#include "records/crc32.hpp"

namespace rl4sys::wire {

/// The learner that a client trains: that of its policy_id, or its own. No client name contains a tilde.
inline std::string learner_name(const std::string& client, const std::string& policy_id) {
    return policy_id.empty() ? client : "shared~" + policy_id;
}

/// The number of a port, or -1.
inline int port_number(const std::string& digits) {
    constexpr std::size_t longest = 5;
    constexpr int largest = 65535;
    if (digits.empty() || digits.size() > longest || digits.find_first_not_of("0123456789") != std::string::npos) {
        return -1;
    }
    const int number = std::stoi(digits);
    return number <= largest ? number : -1;
}

/// The address of the process that serves a learner; one that is not HOST:FIRST-LAST is returned as it is.
inline std::string own_address(const std::string& server, const std::string& learner) {
    const std::size_t dash = server.rfind('-');
    const std::size_t colon = dash == std::string::npos ? dash : server.rfind(':', dash);
    if (colon == std::string::npos) {
        return server;
    }
    const int first = port_number(server.substr(colon + 1, dash - colon - 1));
    const int last = port_number(server.substr(dash + 1));
    if (first < 0 || last <= first) {
        return server;
    }
    const auto processes = static_cast<std::uint32_t>(last - first + 1);
    const auto process = static_cast<int>(records::crc32(learner) % processes);
    return server.substr(0, colon + 1) + std::to_string(first + process);
}

}  // namespace rl4sys::wire
