/// What to send next, and what an answer means. No thread, no clock, no network: transcripts drive it.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "client/retries.hpp"
#include "records/outbox.hpp"
#include "wire/calls.hpp"

namespace rl4sys::client {

/// In front of every payload in the outbox: the schema under which the segment was recorded.
inline constexpr std::size_t hash_bytes = 32;

/// When what waits is worth a message.
struct Pace {
    double interval = 0.0;                  ///< Seconds after which anything is.
    std::optional<std::uint64_t> episodes;  ///< Ended episodes after which everything is.
    std::size_t eager_bytes = 0;            ///< Bytes after which everything is.
};

/// What the server said when the client joined.
struct DeliverySession {
    std::string id;
    std::string learner;
    std::size_t max_message_bytes = 0;
    std::size_t max_push_segments = 0;
};

/// Sends parcels group by group, each again and again until it is settled.
///
/// A group has one epoch and one schema. Only one request is on its way at a time, so that an answer can never be
/// taken for that of another one.
class Delivery {
public:
    Delivery(records::AnyOutbox& outbox, Pace pace, RandomSource rng);

    records::AnyOutbox& outbox() { return outbox_; }
    std::uint64_t acknowledged() const { return acknowledged_; }
    /// Whether to send at once whatever there is.
    void set_flushing(bool flushing) { flushing_ = flushing; }
    /// What the server said since the last call about segments that it refuses for ever.
    std::vector<std::string> take_refusals();

    /// Something new is in the outbox.
    void offered(double now, bool episode_ended);
    /// Seconds until there is something to do; 0 for now, nothing for as long as nothing is offered.
    std::optional<double> wait(double now) const;
    /// The next message, if there is something to send.
    std::optional<wire::PushRequest> request(const DeliverySession& session);
    /// Settle what the answer speaks of; what it leaves out is sent again.
    void answered(const wire::PushReply& reply, double now);
    /// Nothing is known about what was on its way: send it again later, unless it can never be taken.
    void failed(const wire::CallFailed& error, double now, double least_pause = 0.0);

private:
    using Group = std::vector<records::Parcel>;

    bool is_due() const;
    void group(const std::vector<records::Parcel>& parcels, const DeliverySession& session);

    records::AnyOutbox& outbox_;
    Pace pace_;
    Backoff backoff_;
    std::deque<Group> groups_;
    std::uint64_t acknowledged_ = 0;
    std::vector<std::string> refusals_;
    bool flushing_ = false;
    double not_before_ = 0.0;
    std::optional<double> waiting_since_;
    std::uint64_t ended_ = 0;
};

}  // namespace rl4sys::client
