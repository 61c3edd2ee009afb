/// Reads the config files of the original RL4Sys: the flat one, and the one in sections.
///
/// Every documented name keeps its meaning, by the rules of the Python client (`original_settings.py`).
#pragma once

#include <string>

#include "client/json.hpp"

namespace rl4sys::client {

/// What programs read from an original config, as it stands there.
struct OriginalNames {
    std::string algorithm;
    std::string parameters_json;  ///< The section of the parameters, as one JSON object.
    std::string kind;             ///< `onpolicy` or `offpolicy`.
    bool debug = false;
    std::string log_level;  ///< Empty if it is not given.
};

/// The attributes of an original agent, from the values of its config. @throws SettingsError
OriginalNames original_names(const Json& values);

/// Whether a config has the keys of an original one.
bool is_original(const Json& values);

/// The same settings with the present names. @throws SettingsError
Json translate(const Json& values);

}  // namespace rl4sys::client
