/// Defaults of observations: what stands for an array that is left out, and for single features that are NaN.
#pragma once

#include <vector>

#include "client/json.hpp"
#include "rl4sys/settings.hpp"

namespace rl4sys::client {

/// The defaults by array, from the setting `defaults` and from `default` in the setting `observation`.
/// @throws SettingsError for one that does not fit.
FeatureDefaults feature_defaults(const Json& given, const Json& observation, const std::vector<ArraySpec>& specs);

/// The default of an array in its own shape; NaN for features that have none. @throws SettingsError
std::vector<double> default_row(const ArraySpec& spec, const std::vector<double>& values);

}  // namespace rl4sys::client
