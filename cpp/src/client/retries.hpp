/// Which failures pass by themselves, and how long to wait for it.
#pragma once

#include <functional>

#include "wire/calls.hpp"

namespace rl4sys::client {

/// What to do about a failed call.
enum class Remedy {
    Wait,    ///< Try again later.
    Join,    ///< Join again, then repeat the call.
    Repair,  ///< Tell the user, who has to do something about it; until then the same call fails again.
};

/// Seconds between two attempts of a client that is refused: whoever is responsible may have put it right.
constexpr double refused_pause = 30.0;

/// What helps against a failure, by the table in training.proto.
Remedy remedy(const wire::CallFailed& error);

/// Seconds that the server asks to wait, as far as it is believed: a broken one must not keep a client away for days.
double asked_pause(std::uint32_t retry_after_ms);

/// Numbers in [0, 1).
using RandomSource = std::function<double()>;

/// A source of chance that starts from a seed.
RandomSource random_source(std::uint64_t seed);

/// Longer and longer pauses with chance in them, so that many clients do not come back at once.
class Backoff {
public:
    explicit Backoff(RandomSource rng) : rng_(std::move(rng)) {}

    /// Start again with a short pause.
    void succeeded() { failures_ = 0; }
    /// Seconds to wait now; at least as long as the server asked for.
    double failed(double asked = 0.0);

private:
    RandomSource rng_;
    int failures_ = 0;
};

}  // namespace rl4sys::client
