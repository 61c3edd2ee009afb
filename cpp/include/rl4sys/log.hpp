/// @file
/// The client's log messages. They go nowhere until `log_to` sets a sink.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace rl4sys {

enum class LogLevel : std::uint8_t { Debug, Info, Warning, Error };

/// Called from any thread, with one message at a time; it must not throw, nor call `log_to` or an agent.
using LogSink = std::function<void(LogLevel level, std::string_view message)>;

/// Send messages of `least` and above to `sink`; an empty one silences them. State changes are logged, not steps.
void log_to(LogSink sink, LogLevel least = LogLevel::Info);

/// A sink that writes lines to the standard error stream.
LogSink standard_error();

/// Send a message to the sink.
void log(LogLevel level, std::string_view message);

}  // namespace rl4sys
