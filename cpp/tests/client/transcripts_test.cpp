// Replays the transcripts of a client's delivery core: the same as in Python.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "client/delivery.hpp"
#include "records/crc32.hpp"
#include "records/outbox.hpp"

namespace rl4sys::client {
namespace {

using nlohmann::json;
using records::OfferOutcome;
using records::Outbox;
using records::OutboxLimits;
using records::Parcel;

std::string bytes_of(const std::string& hex) {
    std::string bytes;
    for (std::size_t at = 0; at < hex.size(); at += 2) {
        bytes += static_cast<char>(std::stoi(hex.substr(at, 2), nullptr, 16));
    }
    return bytes;
}

json key_of(const Parcel& parcel) {
    return {parcel.key.epoch, parcel.key.sequence};
}

json keys_of(const std::vector<Parcel>& parcels) {
    json keys = json::array();
    for (const Parcel& parcel : parcels) {
        keys.push_back(key_of(parcel));
    }
    return keys;
}

/// `REFUSAL_REASON_NOT_FINITE` is counted as `not_finite`.
std::string reason_of(const std::string& name) {
    std::string reason = name.substr(std::string("REFUSAL_REASON_").size());
    std::transform(reason.begin(), reason.end(), reason.begin(), [](unsigned char c) { return std::tolower(c); });
    return reason;
}

wire::Code code_of(const std::string& name) {
    static const std::map<std::string, wire::Code> codes{
        {"CANCELLED", wire::Code::Cancelled},
        {"UNKNOWN", wire::Code::Unknown},
        {"INVALID_ARGUMENT", wire::Code::InvalidArgument},
        {"DEADLINE_EXCEEDED", wire::Code::DeadlineExceeded},
        {"NOT_FOUND", wire::Code::NotFound},
        {"PERMISSION_DENIED", wire::Code::PermissionDenied},
        {"UNAUTHENTICATED", wire::Code::Unauthenticated},
        {"RESOURCE_EXHAUSTED", wire::Code::ResourceExhausted},
        {"FAILED_PRECONDITION", wire::Code::FailedPrecondition},
        {"UNIMPLEMENTED", wire::Code::Unimplemented},
        {"INTERNAL", wire::Code::Internal},
        {"UNAVAILABLE", wire::Code::Unavailable},
    };
    return codes.at(name);
}

OutboxLimits limits_of(const json& limits) {
    static const std::map<std::string, Overflow> words{
        {"block", Overflow::Block}, {"drop_oldest", Overflow::DropOldest}, {"drop_newest", Overflow::DropNewest}};
    return {limits["capacity_bytes"], words.at(limits["overflow"]), limits["window"]};
}

/// The delivery core of one client, which gets the events of a transcript in order.
class Replay {
public:
    explicit Replay(const json& transcript)
        : limits_(limits_of(transcript["limits"])),
          session_{"s",
                   "learner",
                   transcript["session"]["max_message_bytes"],
                   transcript["session"]["max_push_segments"],
                   false,
                   transcript["session"].value("max_pack_segments", std::size_t{0})} {
        const json& pace = transcript["pace"];
        pace_.interval = pace["interval"];
        pace_.eager_bytes = pace["eager_bytes"];
        if (!pace["episodes"].is_null()) {
            pace_.episodes = pace["episodes"].get<std::uint64_t>();
        }
        start(transcript["epoch"], {});
    }

    json answer(const json& event) {
        chances_ = event.value("chances", json::array());
        chances_used_ = 0;
        const json answer = answer_to(event, event["do"]);
        EXPECT_EQ(chances_used_, chances_.size()) << "chance is drawn as often as in the transcript";
        return answer;
    }

    json counts() const {
        json drops = json::object();
        for (const auto& [reason, count] : outbox_->drops()) {
            drops[reason] = count;
        }
        return {{"backlog", outbox_->backlog()},
                {"backlog_bytes", outbox_->backlog_bytes()},
                {"backlog_segments", outbox_->backlog_segments()},
                {"in_flight", outbox_->in_flight()},
                {"acknowledged", delivery_->acknowledged()},
                {"drops", drops}};
    }

private:
    void start(std::uint64_t epoch, const std::vector<Parcel>& backlog) {
        delivery_.reset();
        outbox_ = std::make_unique<Outbox>(epoch, limits_, backlog);
        delivery_ =
            std::make_unique<Delivery>(*outbox_, pace_, [this] { return chances_.at(chances_used_++).get<double>(); });
    }

    json answer_to(const json& event, const std::string& what) {
        if (what == "offer") {
            return offer(event);
        }
        if (what == "flush") {
            if (event["on"]) {
                delivery_->flush();
            } else {
                delivery_->end_flush();
            }
            return nullptr;
        }
        if (what == "wait") {
            const auto pause = delivery_->wait(event["now"]);
            return pause ? json(*pause) : json(nullptr);
        }
        if (what == "request") {
            return request();
        }
        if (what == "answered") {
            delivery_->answered(reply_of(event), event["now"]);
            return nullptr;
        }
        if (what == "failed") {
            const wire::Failure failure{wire::FailureReason::Unspecified, event["retry_after_ms"]};
            delivery_->failed(wire::CallFailed(code_of(event["code"]), "failed", failure), event["now"]);
            return nullptr;
        }
        if (what == "restart") {
            const std::vector<Parcel> backlog = outbox_->unsettled();
            start(event["epoch"], backlog);
            return keys_of(backlog);
        }
        throw std::invalid_argument("A transcript has the unknown event " + what);
    }

    json offer(const json& event) {
        const std::string hash(hash_bytes, static_cast<char>(event["schema"].get<int>()));
        const std::uint32_t count = event.value("segments", 1U);
        const records::Offer offer = outbox_->offer(hash + bytes_of(event["body"]), count);
        if (offer.outcome != OfferOutcome::Full) {
            delivery_->offered(event["now"], event["episode_ended"].get<bool>() ? count : 0);
        }
        const char* verdict = offer.outcome == OfferOutcome::Accepted  ? "accepted"
                              : offer.outcome == OfferOutcome::Dropped ? "dropped"
                                                                       : "full";
        return {{"verdict", verdict},
                {"sequence", offer.parcel ? json(offer.parcel->key.sequence) : json(nullptr)},
                {"evicted", keys_of(offer.evicted)}};
    }

    json request() {
        const auto request = delivery_->request(session_);
        if (!request) {
            return nullptr;
        }
        json segments = json::array();
        for (const wire::PushedSegment& pushed : request->segments) {
            segments.push_back({pushed.sequence, records::crc32(pushed.segment)});
            if (pushed.count > 0) {
                segments.back().push_back(pushed.count);
            }
        }
        return {{"epoch", request->epoch},
                {"schema", static_cast<int>(static_cast<unsigned char>(request->schema_hash[0]))},
                {"segments", segments}};
    }

    static wire::PushReply reply_of(const json& event) {
        wire::PushReply reply;
        for (const json& range : event["acknowledged"]) {
            reply.acknowledged.push_back({range[0], range[1]});
        }
        for (const json& refusal : event["refused"]) {
            reply.refused.push_back(
                {refusal[0], reason_of(refusal[1]), "no", refusal.size() > 2 ? refusal[2].get<std::uint32_t>() : 0U});
        }
        reply.retry_after_ms = event["retry_after_ms"];
        return reply;
    }

    OutboxLimits limits_;
    DeliverySession session_;
    Pace pace_;
    json chances_;
    std::size_t chances_used_ = 0;
    std::unique_ptr<Outbox> outbox_;
    std::unique_ptr<Delivery> delivery_;
};

void expect_equal(const json& event, const json& got) {
    const json& expected = event["answer"];
    if (event["do"] == "wait" && expected.is_number() && got.is_number()) {
        EXPECT_NEAR(got.get<double>(), expected.get<double>(), 1e-9);
    } else {
        EXPECT_EQ(got, expected);
    }
}

TEST(Transcripts, EveryEventHasTheGoldenAnswer) {
    std::ifstream file(RL4SYS_CONFORMANCE "/vectors/transcripts.json");
    ASSERT_TRUE(file) << "conformance/vectors/transcripts.json is missing";
    const json transcripts = json::parse(file)["transcripts"];
    ASSERT_GE(transcripts.size(), 1U);
    for (const json& transcript : transcripts) {
        Replay replay(transcript);
        int number = 0;
        for (const json& event : transcript["events"]) {
            SCOPED_TRACE(transcript["name"].get<std::string>() + ", event " + std::to_string(number++) + ": " +
                         event["do"].get<std::string>());
            expect_equal(event, replay.answer(event));
            ASSERT_EQ(replay.counts(), event["after"]);
        }
    }
}

}  // namespace
}  // namespace rl4sys::client
