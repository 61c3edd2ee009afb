/// Notices that a process was forked: threads, locks and connections do not survive that.
#pragma once

#include <cstdint>
#include <string>

namespace rl4sys::client {

/// How often this process was forked from the one that asked first.
std::uint64_t forks() noexcept;

/// What to tell whoever uses an agent that belongs to the parent process.
std::string explain_fork();

}  // namespace rl4sys::client
