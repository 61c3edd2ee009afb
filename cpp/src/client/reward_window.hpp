/// Reads the setting `reward_window`.
#pragma once

#include "client/json.hpp"
#include "rl4sys/reward_window.hpp"

namespace rl4sys::client {

/// `16` decisions, or a time such as `"30s"`. @throws SettingsError
RewardWindow reward_window_from_settings(const Json& value);
/// Reads the setting `reward_timeout`; `window` is the other one, which must be absent.
RewardWindow reward_timeout_from_settings(const Json& value, const Json& window);

}  // namespace rl4sys::client
