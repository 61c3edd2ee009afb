/// A monotonic clock in seconds.
#pragma once

#include <chrono>
#include <functional>

namespace rl4sys::client {

using Clock = std::function<double()>;

inline double steady_seconds() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// A duration for condition variables; at most a day, so that no sum overflows.
inline std::chrono::duration<double> length_of(double seconds) {
    constexpr double day = 86'400.0;
    return std::chrono::duration<double>(seconds < 0.0 ? 0.0 : seconds < day ? seconds : day);
}

}  // namespace rl4sys::client
