/// Detects forks, which an agent does not survive: threads, locks and connections stay in the parent.
#pragma once

#include <cstdint>
#include <string>

namespace rl4sys::client {

/// How many forks lie between this process and the one that loaded this library.
std::uint64_t forks() noexcept;

/// The error for an agent that belongs to the parent process.
std::string explain_fork();

}  // namespace rl4sys::client
