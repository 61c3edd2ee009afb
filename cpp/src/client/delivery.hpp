/// Decides what to send next and what a reply means. It has no thread, clock or network, so transcripts can drive it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "client/retries.hpp"
#include "records/outbox.hpp"
#include "wire/calls.hpp"

namespace rl4sys::client {

/// Every payload in the outbox begins with the hash of the schema under which its segment was recorded.
inline constexpr std::size_t hash_bytes = 32;

/// When waiting segments are sent.
struct Pace {
    double interval = 0.0;                  ///< After this many seconds at the latest.
    std::optional<std::uint64_t> episodes;  ///< Sooner, once this many episodes have ended.
    std::size_t eager_bytes = 0;            ///< Sooner, once this many bytes are waiting.
};

/// The session and its limits, from the reply to Join.
struct DeliverySession {
    std::string id;
    std::string learner;
    std::size_t max_message_bytes = 0;
    std::size_t max_push_segments = 0;
    bool accepts_zstd = false;          ///< Whether segments may be sent as zstd frames.
    std::size_t max_pack_segments = 0;  ///< Segments that may be sent as one pack; larger packs are split.
};

/// Sends parcels in groups and resends each until it is settled.
///
/// A group has one epoch and one schema. There is only one request at a time, so a reply can never be taken for that
/// of another request.
class Delivery {
public:
    Delivery(records::AnyOutbox& outbox, Pace pace, RandomSource rng);

    records::AnyOutbox& outbox() { return outbox_; }
    std::uint64_t acknowledged() const { return acknowledged_; }
    /// Send everything at once, without the pause after a failed call.
    void flush() {
        flushing_ = true;
        not_before_ = std::min(not_before_, asked_until_);
    }
    /// Send at the usual pace again.
    void end_flush() { flushing_ = false; }
    /// The server's messages, since the last call, about segments that it refuses permanently.
    std::vector<std::string> take_refusals();

    /// Note that the outbox has a new parcel, with which so many episodes ended.
    void offered(double now, std::uint64_t ended);
    /// Seconds until there is something to do: 0 for now, nothing until something is offered.
    std::optional<double> wait(double now) const;
    /// Send nothing before this time.
    void pause(double until) { not_before_ = asked_until_ = std::max(not_before_, until); }
    /// The next message, if there is something to send.
    std::optional<wire::PushRequest> request(const DeliverySession& session);
    /// Settle the parcels that the reply mentions; the others will be sent again.
    void answered(const wire::PushReply& reply, double now);
    /// Send the parcels of the failed call again later, unless the server can never accept them.
    void failed(const wire::CallFailed& error, double now, double least_pause = 0.0);

private:
    /// What a request has of a parcel: the whole of it, or one segment of a pack that is split.
    struct Entry {
        records::Parcel parcel;
        std::uint64_t sequence = 0;
        std::uint32_t count = 1;
        std::string body;
    };
    /// What is known of the segments of a pack.
    struct Settling {
        std::set<std::uint64_t> stored;
        records::Refused refused;
    };
    using Group = std::vector<Entry>;

    bool is_due() const;
    void disconnected();
    void group(const std::vector<records::Parcel>& parcels, const DeliverySession& session);
    /// How to send a parcel; nothing if it can never be sent.
    std::vector<Entry> entries(const records::Parcel& parcel, const DeliverySession& session, std::size_t largest);
    /// Settle a pack once every segment of it is stored or refused.
    void settle_pack(const Entry& entry, const wire::PushReply& reply);

    records::AnyOutbox& outbox_;
    Pace pace_;
    Backoff backoff_;
    std::deque<Group> groups_;
    /// Packs in flight of which a part is settled.
    std::unordered_map<records::ParcelKey, Settling, records::ParcelKeyHash> settling_;
    std::uint64_t acknowledged_ = 0;
    std::vector<std::string> refusals_;
    bool flushing_ = false;
    double not_before_ = 0.0;
    double asked_until_ = 0.0;  ///< The end of the pause that the server asked for.
    std::optional<double> waiting_since_;
    std::uint64_t ended_ = 0;
};

}  // namespace rl4sys::client
