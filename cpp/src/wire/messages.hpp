/// The messages of the service to and from plain records.
#pragma once

#include <rl4sys/v1/training.pb.h>

#include <string_view>

#include "wire/calls.hpp"

namespace rl4sys::wire {

v1::JoinRequest to_message(const JoinRequest& request);
v1::PushRequest to_message(const PushRequest& request);
v1::PullRequest to_message(const PullRequest& request);
v1::WatchRequest to_message(const WatchRequest& request);
v1::ActRequest to_message(const ActRequest& request);
v1::ReportRequest to_message(const ReportRequest& request);

/// @throws ContractViolation for an invalid policy or schema.
JoinReply from_message(const v1::JoinReply& message);
PushReply from_message(const v1::PushReply& message);
PatchChunk from_message(v1::PatchChunk&& message);
NewVersion from_message(v1::NewVersion&& message);
ActReply from_message(v1::ActReply&& message);
ReportReply from_message(const v1::ReportReply& message);

}  // namespace rl4sys::wire
