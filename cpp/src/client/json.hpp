/// The JSON of config files and caches; names keep the order in which they stand.
#pragma once

#include <nlohmann/json.hpp>

namespace rl4sys::client {

using Json = nlohmann::ordered_json;

}  // namespace rl4sys::client
