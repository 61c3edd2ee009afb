/// Which failures are retried, and after what pause.
#pragma once

#include <functional>

#include "wire/calls.hpp"

namespace rl4sys::client {

/// What to do about a failed call.
enum class Remedy {
    Wait,    ///< Try again later.
    Join,    ///< Join again, then repeat the call.
    Repair,  ///< Report it to the user: the call fails again until the cause is repaired.
};

/// Seconds between two attempts of a refused client: the cause may have been repaired meanwhile.
constexpr double refused_pause = 30.0;

/// What to do about a failure, by the table in training.proto.
Remedy remedy(const wire::CallFailed& error);

/// How much a failed call has to do with the server.
enum class Reach {
    Answered,     ///< The server reported the problem.
    Unanswered,   ///< No reply came: the network or a proxy failed the call.
    Unreachable,  ///< No connection to the server can be made at present.
};

/// How far a failed call came.
Reach reach_of(const wire::CallFailed& error);

/// The pause in seconds that the server asks for, within limits: a broken server must not silence a client for days.
double asked_pause(std::uint32_t retry_after_ms);

/// Uniform random numbers in [0, 1).
using RandomSource = std::function<double()>;

/// A random source with this seed.
RandomSource random_source(std::uint64_t seed);

/// Exponential backoff with jitter, so that many clients do not reconnect at once.
class Backoff {
public:
    explicit Backoff(RandomSource rng) : rng_(std::move(rng)) {}

    /// Begin the next failure with a short pause again.
    void succeeded() { failures_ = 0; }
    /// Seconds to wait after this failure; at least what the server asked for.
    double failed(double asked = 0.0);

private:
    RandomSource rng_;
    int failures_ = 0;
};

}  // namespace rl4sys::client
