/// Reads the config files of the original RL4Sys: the flat one, and the one in sections.
///
/// Every documented name keeps its meaning, by the rules of the Python client (`original_settings.py`).
#pragma once

#include "client/json.hpp"

namespace rl4sys::client {

/// Whether a config has the keys of an original one.
bool is_original(const Json& values);

/// The same settings with the present names. @throws SettingsError
Json translate(const Json& values);

}  // namespace rl4sys::client
