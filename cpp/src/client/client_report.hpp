/// The health of an agent as the message that is reported to the server.
#pragma once

#include "rl4sys/health.hpp"
#include "wire/calls.hpp"

namespace rl4sys::client {

/// The message for ReportRequest.
wire::ClientReport client_report(const Health& health, double uptime);

}  // namespace rl4sys::client
