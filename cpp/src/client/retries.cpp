#include "client/retries.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>

namespace rl4sys::client {
namespace {

using wire::Code;
using wire::FailureReason;

// Seconds. The longest is short enough for a client to catch up within 5 s after the network recovers.
constexpr double first_pause = 0.1;
constexpr double longest_pause = 3.0;
constexpr double longest_asked = 60.0;
constexpr int most_doublings = 16;

}  // namespace

Remedy remedy(const wire::CallFailed& error) {
    switch (error.code) {
        case Code::Unavailable:
        case Code::DeadlineExceeded:
        case Code::ResourceExhausted:
        case Code::Internal:
        case Code::Cancelled: return Remedy::Wait;
        case Code::FailedPrecondition: break;
        default: return Remedy::Repair;
    }
    switch (error.failure.reason) {
        case FailureReason::UnknownSession:
        case FailureReason::Schema:
        case FailureReason::LearnerFailed:
        case FailureReason::Unspecified: return Remedy::Join;
        default: return Remedy::Repair;
    }
}

Reach reach_of(const wire::CallFailed& error) {
    if (error.failure.reason != FailureReason::Unspecified || error.failure.retry_after_ms != 0) {
        return Reach::Answered;
    }
    switch (error.code) {
        case Code::Unavailable: return Reach::Unreachable;
        case Code::DeadlineExceeded: return Reach::Unanswered;
        default: return Reach::Answered;
    }
}

double asked_pause(std::uint32_t retry_after_ms) {
    return std::min(longest_asked, retry_after_ms / 1000.0);
}

RandomSource random_source(std::uint64_t seed) {
    auto generator = std::make_shared<std::mt19937_64>(seed);
    return [generator] { return static_cast<double>((*generator)() >> 11) * 0x1.0p-53; };
}

double Backoff::failed(double asked) {
    const double pause = std::min(longest_pause, std::ldexp(first_pause, failures_)) * (0.5 + 0.5 * rng_());
    failures_ = std::min(failures_ + 1, most_doublings);
    return std::max(pause, asked * (1.0 + 0.25 * rng_()));
}

}  // namespace rl4sys::client
