/// Detects forks, which an agent does not survive: threads, locks and connections stay in the parent.
#pragma once

#include <cstdint>
#include <string>

namespace rl4sys::client {

/// How many forks lie between this process and the one that loaded this library.
std::uint64_t forks() noexcept;

/// Note that this process uses gRPC, whose threads and descriptors no child can use.
void note_grpc() noexcept;

/// Whether a process that this one was forked from used gRPC before that fork.
bool inherits_grpc() noexcept;

/// The error for a client that connects in such a process.
std::string explain_inherited_grpc();

/// The error for an agent that belongs to the parent process.
std::string explain_fork();

}  // namespace rl4sys::client
