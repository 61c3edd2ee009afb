/// Why a call failed, for programs, and its form on the wire.
#pragma once

#include <cstdint>
#include <string_view>

namespace rl4sys::wire {

/// The reason of a failure. The numbers are those of the proto.
enum class FailureReason : std::uint8_t {
    Unspecified = 0,
    UnknownSession = 1,
    Protocol = 2,
    MissingOps = 3,
    OtherLearner = 4,
    LearnerFailed = 5,
    InboxFull = 6,
    Quota = 7,
    Storage = 8,
    Draining = 9,
    VersionGone = 10,
    Schema = 11,
    AlgorithmForbidden = 12,
    Limit = 13,
};

/// Details of a failed call.
struct Failure {
    FailureReason reason = FailureReason::Unspecified;
    std::uint32_t retry_after_ms = 0;  ///< 0: the client's own backoff decides.
};

/// The failure in the trailing metadata `rl4sys-failure-bin`; an unspecified one where it cannot be read.
///
/// A client must handle every failure, even one that a proxy or a newer server invented.
Failure failure_from_metadata(std::string_view value);

/// The metadata key of a failure.
inline constexpr const char* failure_metadata = "rl4sys-failure-bin";

}  // namespace rl4sys::wire
