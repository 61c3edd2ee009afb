/// gRPC as a part of this process: how it starts, what it logs, and how a fork does without it.
#pragma once

#include <cstdint>
#include <string>

namespace rl4sys::client {

/// Keeps gRPC started; its messages go to the client's log. A fork shuts it down for a moment, together with everything
/// that `fork_gate` knows, so that a child can start its own.
class GrpcLibrary {
public:
    GrpcLibrary();
    ~GrpcLibrary();
    GrpcLibrary(const GrpcLibrary&) = delete;
    GrpcLibrary& operator=(const GrpcLibrary&) = delete;

private:
    std::uint64_t forks_;
};

/// Whether gRPC cannot be used here: the parent still used it when it forked.
bool inherits_grpc() noexcept;

/// The error for a client that connects in such a process.
std::string explain_inherited_grpc();

}  // namespace rl4sys::client
