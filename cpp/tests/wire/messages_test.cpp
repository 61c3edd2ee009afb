#include "wire/messages.hpp"

#include <gtest/gtest.h>

namespace rl4sys::wire {
namespace {

TEST(Messages, FailuresAreReadFromAnyMetadata) {
    v1::Failure message;
    message.set_reason(v1::FAILURE_REASON_INBOX_FULL);
    message.set_retry_after_ms(250);
    const Failure failure = failure_from_metadata(message.SerializeAsString());
    EXPECT_EQ(failure.reason, FailureReason::InboxFull);
    EXPECT_EQ(failure.retry_after_ms, 250U);
    EXPECT_EQ(failure_from_metadata("\xff\xff\xff").reason, FailureReason::Unspecified);
    EXPECT_EQ(failure_from_metadata(std::string(5000, '\0')).retry_after_ms, 0U);
    message.set_reason(static_cast<v1::FailureReason>(99));
    EXPECT_EQ(failure_from_metadata(message.SerializeAsString()).reason, FailureReason::Unspecified);
}

TEST(Messages, ThePushReplyIsReadCompletely) {
    v1::PushReply message;
    auto* range = message.add_acknowledged();
    range->set_first(3);
    range->set_last(7);
    auto* refusal = message.add_refused();
    refusal->set_sequence(8);
    refusal->set_reason(v1::REFUSAL_REASON_UNKNOWN_VERSION);
    refusal->set_message("no such version");
    message.add_refused()->set_reason(static_cast<v1::RefusalReason>(42));
    const PushReply reply = from_message(message);
    EXPECT_EQ(reply.acknowledged[0].last, 7U);
    EXPECT_EQ(reply.refused[0].reason, "unknown_version");
    EXPECT_EQ(reply.refused[1].reason, "refused");
}

TEST(Messages, TheJoinRequestIsWrittenCompletely) {
    JoinRequest request;
    request.client = "cache-1";
    request.algorithm = "ppo";
    request.parameters_json = "{}";
    request.experiment = "ignored";
    request.observation = {{"queue", ElementType::UInt8, {4, 5}}};
    request.action = DiscreteAction{3, 1};
    request.heads = {HeadKind::Gaussian};
    const v1::JoinRequest message = to_message(request);
    EXPECT_EQ(message.protocol(), protocol);
    EXPECT_EQ(message.algorithm().name(), "ppo");
    EXPECT_EQ(message.observation(0).element_type(), v1::ELEMENT_TYPE_UINT8);
    EXPECT_EQ(message.observation(0).shape(1), 5U);
    EXPECT_EQ(message.action().discrete().start(), 1);
    EXPECT_EQ(message.heads(0), v1::HEAD_KIND_GAUSSIAN);
}

TEST(Messages, APatchWithoutABaseDiffersFromOneWithBaseZero) {
    v1::PatchChunk message;
    message.mutable_header()->set_target(3);
    EXPECT_FALSE(from_message(v1::PatchChunk(message)).header->base);
    message.mutable_header()->set_base(0);
    EXPECT_EQ(from_message(v1::PatchChunk(message)).header->base, 0U);
}

}  // namespace
}  // namespace rl4sys::wire
