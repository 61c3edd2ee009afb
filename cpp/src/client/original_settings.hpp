/// Reads the config files of the original RL4Sys: the flat one, and the one in sections.
///
/// Every documented name keeps its meaning, by the rules of the Python client (`original_settings.py`).
#pragma once

#include "client/json.hpp"

namespace rl4sys::client {

/// Whether a file has the shape of the original ones.
bool is_original(const Json& values);

/// The same in the present shape. @throws SettingsError
Json translate(const Json& values);

}  // namespace rl4sys::client
