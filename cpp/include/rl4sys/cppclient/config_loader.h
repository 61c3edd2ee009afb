/// @file
/// The error of the original configuration loader. `RL4SysAgent` reads config files itself, and `rl4sys::load_settings`
/// gives their contents.
#pragma once

#include <rl4sys/settings.hpp>

namespace rl4sys {
namespace cppclient {

/// What is thrown for a config that cannot be read.
using ConfigurationError = rl4sys::SettingsError;

}  // namespace cppclient
}  // namespace rl4sys
