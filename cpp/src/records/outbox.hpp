/// What a client still has to deliver: a bounded queue that resends until acknowledged. No I/O, no clock.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "rl4sys/settings.hpp"

namespace rl4sys::records {

/// Bytes that a parcel takes beyond its payload, on the disk and about so in memory: tiny parcels are bounded too.
inline constexpr std::size_t parcel_overhead = 64;

/// How much a client keeps and how much of it may be on its way.
struct OutboxLimits {
    std::size_t capacity_bytes = std::size_t{64} << 20;  ///< Payloads plus `parcel_overhead` each.
    Overflow overflow = Overflow::DropOldest;
    std::size_t window = 64;  ///< Parcels sent and not yet acknowledged; all are sent again after a break.
};

/// What an acknowledgement refers to.
struct ParcelKey {
    std::uint64_t epoch = 0;
    std::uint64_t sequence = 0;

    bool operator==(const ParcelKey& other) const { return epoch == other.epoch && sequence == other.sequence; }
    bool operator!=(const ParcelKey& other) const { return !(*this == other); }
};

struct ParcelKeyHash {
    std::size_t operator()(const ParcelKey& key) const {
        return std::hash<std::uint64_t>()(key.epoch * 0x9E3779B97F4A7C15U + key.sequence);
    }
};

/// A payload with its name for ever: (epoch, sequence) within its client.
struct Parcel {
    ParcelKey key;
    std::shared_ptr<const std::string> payload;

    std::size_t cost() const { return parcel_overhead + payload->size(); }
};

/// What became of an offered payload.
enum class OfferOutcome {
    Accepted,
    Dropped,  ///< It was counted in `drops` and will not be sent.
    Full,     ///< Nothing happened: offer it again when something was settled.
};

/// The answer to a payload.
struct Offer {
    OfferOutcome outcome = OfferOutcome::Accepted;
    std::optional<Parcel> parcel;
    std::vector<Parcel> evicted;  ///< Older parcels that were dropped to make room.
};

using Drops = std::map<std::string, std::uint64_t>;

/// An outbox in memory or on disk. Not for several threads at once.
class AnyOutbox {
public:
    virtual ~AnyOutbox() = default;
    /// Parcels not yet settled, in flight or not.
    virtual std::size_t backlog() const = 0;
    /// What they count for; at most the capacity, unless an earlier start left more.
    virtual std::size_t backlog_bytes() const = 0;
    /// Parcels sent and not yet settled.
    virtual std::size_t in_flight() const = 0;
    /// Payloads that will never be sent, by reason, since this start.
    virtual const Drops& drops() const = 0;
    /// Every parcel not yet settled, oldest first.
    virtual std::vector<Parcel> unsettled() const = 0;
    /// Take a payload in, if there is room or room can be made.
    virtual Offer offer(std::string payload) = 0;
    /// The next parcels to send, now in flight: in order, within the window, at least one if the window has room.
    virtual std::vector<Parcel> take(std::size_t limit_bytes) = 0;
    /// The server has this one for ever; whether it was still here. Late and repeated ones are harmless.
    virtual bool acknowledge(ParcelKey key) = 0;
    /// The server will never take this one: drop it, counted under the reason; whether it was still here.
    virtual bool refuse(ParcelKey key, const std::string& reason) = 0;
    /// What was in flight may be lost: send it again, first and in order.
    virtual void disconnected() = 0;
    /// Let go of files; returns how many parcels are lost with this object.
    virtual std::size_t close() = 0;
};

/// A pure state machine: a parcel waits, is in flight, and is settled (acknowledged or dropped) once.
///
/// Parcels leave in the order they came. `epoch` must never have been used by this client before: draw it at random.
class Outbox final : public AnyOutbox {
public:
    /// `backlog` are parcels of earlier epochs, resent under their own names.
    /// @throws std::invalid_argument if one of them is of this epoch.
    explicit Outbox(std::uint64_t epoch, OutboxLimits limits = {}, const std::vector<Parcel>& backlog = {});

    std::uint64_t epoch() const { return epoch_; }
    const OutboxLimits& limits() const { return limits_; }
    std::size_t backlog() const override { return places_.size(); }
    std::size_t backlog_bytes() const override { return bytes_; }
    std::size_t in_flight() const override { return in_flight_.size(); }
    const Drops& drops() const override { return drops_; }
    std::vector<Parcel> unsettled() const override;
    Offer offer(std::string payload) override;
    std::vector<Parcel> take(std::size_t limit_bytes) override;
    bool acknowledge(ParcelKey key) override { return settle(key); }
    bool refuse(ParcelKey key, const std::string& reason) override;
    void disconnected() override;
    std::size_t close() override { return backlog(); }

private:
    struct Place {
        std::list<Parcel>::iterator parcel;
        bool in_flight = false;
    };

    bool settle(ParcelKey key);
    void evict(std::size_t cost, std::vector<Parcel>& evicted);
    Offer drop_new(const std::string& reason);

    std::uint64_t epoch_;
    OutboxLimits limits_;
    std::list<Parcel> waiting_;
    std::list<Parcel> in_flight_;
    std::unordered_map<ParcelKey, Place, ParcelKeyHash> places_;
    std::size_t bytes_ = 0;
    std::size_t in_flight_bytes_ = 0;
    std::uint64_t next_sequence_ = 0;
    Drops drops_;
};

}  // namespace rl4sys::records
