#include "client/retries.hpp"

#include <gtest/gtest.h>

namespace rl4sys::client {
namespace {

using wire::CallFailed;
using wire::Code;
using wire::FailureReason;

TEST(Remedy, FollowsTheTableOfTheService) {
    for (const Code code : {Code::Unavailable, Code::DeadlineExceeded, Code::ResourceExhausted, Code::Internal}) {
        EXPECT_EQ(remedy(CallFailed(code, "")), Remedy::Wait);
    }
    EXPECT_EQ(remedy(CallFailed(Code::FailedPrecondition, "", {FailureReason::UnknownSession, 0})), Remedy::Join);
    EXPECT_EQ(remedy(CallFailed(Code::FailedPrecondition, "", {FailureReason::OtherLearner, 0})), Remedy::Repair);
    for (const Code code : {Code::Unauthenticated, Code::PermissionDenied, Code::InvalidArgument, Code::NotFound}) {
        EXPECT_EQ(remedy(CallFailed(code, "")), Remedy::Repair);
    }
}

TEST(Backoff, GrowsToItsLimitAndRestartsAfterASuccess) {
    Backoff backoff([] { return 0.0; });
    EXPECT_DOUBLE_EQ(backoff.failed(), 0.05);
    EXPECT_DOUBLE_EQ(backoff.failed(), 0.1);
    for (int failure = 0; failure < 30; ++failure) {
        EXPECT_LE(backoff.failed(), 1.5);
    }
    EXPECT_DOUBLE_EQ(backoff.failed(), 1.5);
    backoff.succeeded();
    EXPECT_DOUBLE_EQ(backoff.failed(), 0.05);
    EXPECT_GE(backoff.failed(7.0), 7.0) << "the server's word counts";
}

TEST(RandomSource, IsWithinItsBounds) {
    const RandomSource rng = random_source(3);
    for (int draw = 0; draw < 1000; ++draw) {
        const double number = rng();
        EXPECT_GE(number, 0.0);
        EXPECT_LT(number, 1.0);
    }
}

}  // namespace
}  // namespace rl4sys::client
