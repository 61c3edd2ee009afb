/// Checks settings that fit together only if several of them agree.
#pragma once

#include "rl4sys/settings.hpp"

namespace rl4sys::client {

/// The settings with a client_id and with the address of the process that has the learner of this client.
/// @throws SettingsError if they cannot be used, such as a token that would be sent unencrypted.
ClientSettings checked(ClientSettings settings);

}  // namespace rl4sys::client
