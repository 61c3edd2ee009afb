/// gRPC's own threads, by their names.
#pragma once

#include <algorithm>
#include <array>
#include <string>

namespace rl4sys::client {

/// Whether a thread of this name is one of gRPC's. Linux keeps 15 letters.
inline bool is_grpc_thread(const std::string& name) {
    constexpr std::array starts{"grpc", "default-execut", "resolver-execut", "timer_manager", "event_engine"};
    return std::any_of(starts.begin(), starts.end(), [&](const char* start) { return name.rfind(start, 0) == 0; });
}

}  // namespace rl4sys::client
