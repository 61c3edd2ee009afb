#include "wire/failures.hpp"

#include <rl4sys/v1/training.pb.h>

namespace rl4sys::wire {
namespace {

constexpr std::size_t most_failure_bytes = 4096;

}  // namespace

Failure failure_from_metadata(std::string_view value) {
    v1::Failure message;
    if (value.size() > most_failure_bytes || !message.ParseFromArray(value.data(), static_cast<int>(value.size()))) {
        return {};
    }
    const bool known = v1::FailureReason_IsValid(message.reason());
    return {known ? static_cast<FailureReason>(message.reason()) : FailureReason::Unspecified,
            message.retry_after_ms()};
}

}  // namespace rl4sys::wire
