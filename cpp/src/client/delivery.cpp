#include "client/delivery.hpp"

#include <algorithm>
#include <utility>

#include "wire/segment_packs.hpp"

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

/// Bytes that a segment counts as in a request.
std::size_t size_of(std::string_view body) {
    return body.size() + hash_bytes + per_segment;
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

void Delivery::offered(double now, std::uint64_t ended) {
    if (!waiting_since_) {
        waiting_since_ = now;
    }
    ended_ += ended;
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
    const Parcel& parcel = first[0].parcel;
    wire::PushRequest request{session.id, parcel.key.epoch, std::string(schema_of(parcel)), {}};
    for (const Entry& entry : first) {
        request.segments.push_back({entry.sequence, entry.body, 0, entry.count > 1 ? entry.count : 0});
    }
    return request;
}

void Delivery::answered(const wire::PushReply& reply, double now) {
    const Group group = std::move(groups_.front());
    groups_.pop_front();
    // Ranges from the server are never expanded: one may claim to hold 2^63 numbers.
    for (const Entry& entry : group) {
        const bool is_alone = entry.parcel.segments == 1;
        if (is_alone && is_covered(entry.sequence, reply.acknowledged) && outbox_.acknowledge(entry.parcel.key)) {
            ++acknowledged_;
        }
    }
    for (const wire::Refusal& refusal : reply.refused) {
        const auto entry = std::find_if(group.begin(), group.end(), [&](const Entry& each) {
            return each.parcel.segments == 1 && each.sequence == refusal.sequence;
        });
        if (entry != group.end() && outbox_.refuse(entry->parcel.key, refusal.reason)) {
            refusals_.push_back(refusal.message);
        }
    }
    for (const Entry& entry : group) {
        if (entry.parcel.segments > 1) {
            settle_pack(entry, reply);
        }
    }
    backoff_.succeeded();
    not_before_ = asked_until_ = now + asked_pause(reply.retry_after_ms);
    if (groups_.empty() && outbox_.in_flight() > 0) {
        disconnected();
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
    disconnected();
    if (error.code == wire::Code::InvalidArgument) {
        for (const Entry& entry : group) {
            outbox_.refuse(entry.parcel.key, "invalid_argument");
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

void Delivery::disconnected() {
    outbox_.disconnected();
    settling_.clear();
}

void Delivery::settle_pack(const Entry& entry, const wire::PushReply& reply) {
    const Parcel& parcel = entry.parcel;
    // The last number of the entry; ranges from the server are cut to it before they are walked through.
    const std::uint64_t last = entry.sequence + entry.count - 1;
    const bool is_stored = entry.count == parcel.segments &&
                           std::any_of(reply.acknowledged.begin(), reply.acknowledged.end(), [&](const auto& range) {
                               return range.first <= entry.sequence && last <= range.last;
                           });
    if (is_stored && reply.refused.empty()) {
        acknowledged_ += outbox_.acknowledge(parcel.key) ? parcel.segments : 0;
        return;
    }
    Settling& known = settling_[parcel.key];
    for (const wire::SequenceRange& range : reply.acknowledged) {
        for (std::uint64_t number = std::max(entry.sequence, range.first); number <= std::min(last, range.last);
             ++number) {
            known.stored.insert(known.stored.end(), number);
        }
    }
    for (const wire::Refusal& refusal : reply.refused) {
        const std::uint64_t refused_last = refusal.sequence + std::max<std::uint32_t>(refusal.count, 1) - 1;
        bool is_about = false;
        for (std::uint64_t number = std::max(entry.sequence, refusal.sequence); number <= std::min(last, refused_last);
             ++number) {
            known.refused[number] = refusal.reason;
            is_about = true;
        }
        if (is_about) {
            refusals_.push_back(refusal.message);
        }
    }
    for (const std::uint64_t number : known.stored) {
        known.refused.erase(number);
    }
    if (known.stored.size() + known.refused.size() == parcel.segments) {
        if (outbox_.settle_pack(parcel.key, known.refused)) {
            acknowledged_ += known.stored.size();
        }
        settling_.erase(parcel.key);
    }
}

void Delivery::group(const std::vector<Parcel>& parcels, const DeliverySession& session) {
    const std::size_t largest = session.max_message_bytes - message_slack;
    std::size_t free = 0;
    for (const Parcel& parcel : parcels) {
        for (Entry& entry : entries(parcel, session, largest)) {
            const std::size_t size = size_of(entry.body);
            if (groups_.empty() || !is_alike(groups_.back()[0].parcel, parcel) || size > free ||
                groups_.back().size() >= session.max_push_segments) {
                groups_.emplace_back();
                free = largest;
            }
            groups_.back().push_back(std::move(entry));
            free -= size;
        }
    }
}

std::vector<Delivery::Entry> Delivery::entries(const Parcel& parcel, const DeliverySession& session,
                                               std::size_t largest) {
    const std::string_view body = std::string_view(*parcel.payload).substr(hash_bytes);
    const bool fits = size_of(body) <= largest;
    if (fits && (parcel.segments == 1 || parcel.segments <= session.max_pack_segments)) {
        return {{parcel, parcel.key.sequence, parcel.segments, std::string(body)}};
    }
    std::vector<std::string> alone;
    if (parcel.segments > 1) {
        try {
            alone = wire::split_pack(body, parcel.segments);
        } catch (const wire::ContractViolation& error) {
            outbox_.refuse(parcel.key, "malformed");
            refusals_.emplace_back(error.what());
            return {};
        }
    }
    const bool is_too_large =
        std::any_of(alone.begin(), alone.end(), [&](const std::string& each) { return size_of(each) > largest; });
    if (alone.empty() || is_too_large) {
        outbox_.refuse(parcel.key, "too_large");
        return {};
    }
    std::vector<Entry> made;
    made.reserve(alone.size());
    for (std::string& each : alone) {
        made.push_back({parcel, parcel.key.sequence + made.size(), 1, std::move(each)});
    }
    return made;
}

}  // namespace rl4sys::client
