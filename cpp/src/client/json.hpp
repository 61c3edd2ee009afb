/// The JSON of config files and caches; keys keep their order.
#pragma once

#include <nlohmann/json.hpp>

namespace rl4sys::client {

using Json = nlohmann::ordered_json;

}  // namespace rl4sys::client
