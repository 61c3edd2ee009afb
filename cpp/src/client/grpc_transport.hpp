/// Calls over gRPC: TCP or a Unix socket, with TLS and a token where they are set.
#pragma once

#include <memory>

#include "rl4sys/settings.hpp"
#include "wire/calls.hpp"

namespace rl4sys::client {

/// One channel to one server. It connects at the first call and reconnects by itself.
/// @throws SettingsError for certificates that cannot be read.
std::shared_ptr<wire::Transport> grpc_transport(const ClientSettings& settings);

}  // namespace rl4sys::client
