#include "client/delivery.hpp"

#include <algorithm>
#include <utility>

namespace rl4sys::client {
namespace {

using records::Parcel;

constexpr std::size_t message_slack = 4096;
constexpr std::size_t per_segment = 24;  // Bytes that a segment takes in a request beyond its payload.

std::string_view schema_of(const Parcel& parcel) {
    return std::string_view(*parcel.payload).substr(0, hash_bytes);
}

bool is_alike(const Parcel& one, const Parcel& other) {
    return one.key.epoch == other.key.epoch && schema_of(one) == schema_of(other);
}

bool is_covered(std::uint64_t sequence, const std::vector<wire::SequenceRange>& ranges) {
    return std::any_of(ranges.begin(), ranges.end(), [sequence](const wire::SequenceRange& range) {
        return range.first <= sequence && sequence <= range.last;
    });
}

bool has(const std::vector<Parcel>& group, std::uint64_t sequence) {
    return std::any_of(group.begin(), group.end(),
                       [sequence](const Parcel& parcel) { return parcel.key.sequence == sequence; });
}

}  // namespace

Delivery::Delivery(records::AnyOutbox& outbox, Pace pace, RandomSource rng)
    : outbox_(outbox), pace_(pace), backoff_(std::move(rng)) {
    if (outbox.backlog() > 0) {
        waiting_since_ = 0.0;
    }
}

std::vector<std::string> Delivery::take_refusals() {
    return std::exchange(refusals_, {});
}

void Delivery::offered(double now, bool episode_ended) {
    if (!waiting_since_) {
        waiting_since_ = now;
    }
    ended_ += episode_ended ? 1 : 0;
}

std::optional<double> Delivery::wait(double now) const {
    if (outbox_.backlog() == 0) {
        return std::nullopt;
    }
    double pause = not_before_ - now;
    if (groups_.empty() && !is_due()) {
        pause = std::max(pause, waiting_since_.value_or(0.0) + pace_.interval - now);
    }
    return std::max(0.0, pause);
}

std::optional<wire::PushRequest> Delivery::request(const DeliverySession& session) {
    while (groups_.empty()) {
        ended_ = 0;
        waiting_since_.reset();
        const std::vector<Parcel> parcels = outbox_.take(session.max_message_bytes - message_slack);
        if (parcels.empty()) {
            return std::nullopt;
        }
        group(parcels, session);
    }
    const Group& first = groups_.front();
    wire::PushRequest request{session.id, first[0].key.epoch, std::string(schema_of(first[0])), {}};
    for (const Parcel& parcel : first) {
        request.segments.push_back({parcel.key.sequence, parcel.payload->substr(hash_bytes)});
    }
    return request;
}

void Delivery::answered(const wire::PushReply& reply, double now) {
    const Group group = std::move(groups_.front());
    groups_.pop_front();
    // Ranges from the server are never expanded: one may claim to hold 2^63 numbers.
    for (const Parcel& parcel : group) {
        if (is_covered(parcel.key.sequence, reply.acknowledged) && outbox_.acknowledge(parcel.key)) {
            ++acknowledged_;
        }
    }
    for (const wire::Refusal& refusal : reply.refused) {
        if (has(group, refusal.sequence) && outbox_.refuse({group[0].key.epoch, refusal.sequence}, refusal.reason)) {
            refusals_.push_back(refusal.message);
        }
    }
    backoff_.succeeded();
    not_before_ = asked_until_ = now + asked_pause(reply.retry_after_ms);
    if (groups_.empty() && outbox_.in_flight() > 0) {
        outbox_.disconnected();
        // A server that leaves parcels out without asking for a pause must not be called in a tight loop.
        if (reply.retry_after_ms == 0) {
            not_before_ = now + backoff_.failed();
        }
    }
    if (outbox_.backlog() > 0 && !waiting_since_) {
        waiting_since_ = now;
    }
}

void Delivery::failed(const wire::CallFailed& error, double now, double least_pause) {
    const Group group = groups_.empty() ? Group() : std::move(groups_.front());
    groups_.clear();
    outbox_.disconnected();
    if (error.code == wire::Code::InvalidArgument) {
        for (const Parcel& parcel : group) {
            outbox_.refuse(parcel.key, "invalid_argument");
        }
        refusals_.emplace_back(error.what());
    }
    waiting_since_ = now;
    const double asked = std::max(least_pause, asked_pause(error.failure.retry_after_ms));
    asked_until_ = now + asked;
    not_before_ = now + backoff_.failed(asked);
}

bool Delivery::is_due() const {
    return flushing_ || outbox_.backlog_bytes() >= pace_.eager_bytes || (pace_.episodes && ended_ >= *pace_.episodes);
}

void Delivery::group(const std::vector<Parcel>& parcels, const DeliverySession& session) {
    const std::size_t largest = session.max_message_bytes - message_slack;
    std::size_t free = 0;
    for (const Parcel& parcel : parcels) {
        const std::size_t size = parcel.payload->size() + per_segment;
        if (size > largest) {
            outbox_.refuse(parcel.key, "too_large");
            continue;
        }
        if (groups_.empty() || !is_alike(groups_.back()[0], parcel) || size > free ||
            groups_.back().size() >= session.max_push_segments) {
            groups_.emplace_back();
            free = largest;
        }
        groups_.back().push_back(parcel);
        free -= size;
    }
}

}  // namespace rl4sys::client
