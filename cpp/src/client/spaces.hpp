/// Observation and action spaces from a config file.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "client/json.hpp"
#include "rl4sys/settings.hpp"

namespace rl4sys::client {

/// `8`, `[84, 84]`, or named arrays `{"queue": 8, "image": {"dtype": "uint8", "shape": [84, 84], "default": 0}}`.
std::vector<ArraySpec> observation_from_settings(const Json& value);

/// `[128, 8]`: up to 128 candidates with 8 features each, and their number.
std::vector<ArraySpec> candidates_from_settings(const Json& value);

/// Whether the setting `observation` describes one unnamed array, not several by name.
bool is_one_array(const Json& value);

/// `4` (choices), `{"n": 4, "start": 0}`, `{"sizes": [3, 2]}`, `{"low": [-1, -1], "high": [1, 1]}`, or parts of these.
ActionSpec action_from_settings(const Json& value);

/// The parts of a structured action, by name `{"server": 4, "rate": {"low": [0], "high": [1]}}` or position; else null.
std::shared_ptr<const ActionStructure> action_structure_from_settings(const Json& value);

/// Whether one of these arrays is the mask.
bool has_mask(const std::vector<ArraySpec>& observation);

}  // namespace rl4sys::client
