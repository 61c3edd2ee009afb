/// What this process has used so far: processor time by kind of thread, memory, context switches.
#pragma once

#include <cstdint>

namespace rl4sys::client {

/// Totals since the process began; differences of two tell what happened between them.
struct ProcessUsage {
    double seconds = 0.0;         ///< By a monotonic clock.
    double cpu = 0.0;             ///< Seconds of all threads.
    double background_cpu = 0.0;  ///< Seconds of the threads of the client and of gRPC, by their names.
    std::uint64_t memory = 0;     ///< Resident bytes at this moment.
    std::uint64_t waits = 0;      ///< Voluntary context switches.
    std::uint64_t preemptions = 0;

    static ProcessUsage now();
};

}  // namespace rl4sys::client
