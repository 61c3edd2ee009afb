/// The outbox of a client: a bounded queue that resends parcels until they are acknowledged. No I/O, no clock.
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

/// Bytes that a parcel takes beyond its payload, on disk and roughly in memory, so that tiny parcels are bounded too.
inline constexpr std::size_t parcel_overhead = 64;

/// How much a client keeps and how many parcels may be in flight.
struct OutboxLimits {
    std::size_t capacity_bytes = std::size_t{64} << 20;  ///< Payloads plus `parcel_overhead` each.
    Overflow overflow = Overflow::DropOldest;
    std::size_t window = 64;  ///< Parcels sent and not yet acknowledged; all are sent again after a reconnect.
};

/// The key of a parcel, which acknowledgements refer to.
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

/// A payload with its permanent key: (epoch, sequence) within its client.
///
/// A pack of segments has their sequence numbers, of which that of the key is the first, and is settled as a whole.
struct Parcel {
    ParcelKey key;
    std::shared_ptr<const std::string> payload;
    std::uint32_t segments = 1;  ///< How many it holds.

    std::size_t cost() const { return parcel_overhead + payload->size(); }
};

/// What happened to an offered payload.
enum class OfferOutcome {
    Accepted,
    Dropped,  ///< It is counted in `drops` and will not be sent.
    Full,     ///< It was not accepted: offer it again after a settlement.
};

/// The result of offering a payload.
struct Offer {
    OfferOutcome outcome = OfferOutcome::Accepted;
    std::optional<Parcel> parcel;
    std::vector<Parcel> evicted;  ///< Older parcels that were dropped for it.
};

using Drops = std::map<std::string, std::uint64_t>;
/// Sequence numbers that are refused, with the reasons.
using Refused = std::map<std::uint64_t, std::string>;

/// An outbox in memory or on disk. Not thread-safe.
class AnyOutbox {
public:
    virtual ~AnyOutbox() = default;
    /// Parcels not yet settled, in flight or not.
    virtual std::size_t backlog() const = 0;
    /// The segments in them.
    virtual std::size_t backlog_segments() const = 0;
    /// Their size against the capacity, which only the backlog of an earlier start may exceed.
    virtual std::size_t backlog_bytes() const = 0;
    /// Parcels sent and not yet settled.
    virtual std::size_t in_flight() const = 0;
    /// Segments that will never be sent, by reason, since this start.
    virtual const Drops& drops() const = 0;
    /// Every parcel not yet settled, oldest first.
    virtual std::vector<Parcel> unsettled() const = 0;
    /// Add a payload of so many segments if it fits or older ones can be dropped for it.
    virtual Offer offer(std::string payload, std::uint32_t segments = 1) = 0;
    /// The next parcels to send, now in flight: in order, within the window, at least one unless the window is full.
    virtual std::vector<Parcel> take(std::size_t limit_bytes) = 0;
    /// Note that the server has this one; returns whether it was still here. Late and repeated calls are harmless.
    virtual bool acknowledge(ParcelKey key) = 0;
    /// Drop a parcel that the server refuses permanently, counted under the reason; returns whether it was still here.
    virtual bool refuse(ParcelKey key, const std::string& reason) = 0;
    /// Note that the server has a pack but for these numbers, which it refuses permanently; count them by reason.
    virtual bool settle_pack(ParcelKey key, const Refused& refused) = 0;
    /// Treat everything in flight as unsent: it is sent again, first and in order.
    virtual void disconnected() = 0;
    /// Close the files; returns how many parcels are lost with this object.
    virtual std::size_t close() = 0;
};

/// A pure state machine: a parcel waits, is in flight, and is settled (acknowledged or dropped) once.
///
/// Parcels are sent in the order in which they were offered. `epoch` must be new for this client: draw it at random.
class Outbox final : public AnyOutbox {
public:
    /// `backlog` are parcels of earlier epochs, resent with their own keys.
    /// @throws std::invalid_argument if one of them is of this epoch.
    explicit Outbox(std::uint64_t epoch, OutboxLimits limits = {}, const std::vector<Parcel>& backlog = {});

    std::uint64_t epoch() const { return epoch_; }
    const OutboxLimits& limits() const { return limits_; }
    /// The segments of a parcel that is not settled; 0 if it is not here.
    std::uint32_t segments_of(ParcelKey key) const;
    std::size_t backlog() const override { return places_.size(); }
    std::size_t backlog_segments() const override { return segments_; }
    std::size_t backlog_bytes() const override { return bytes_; }
    std::size_t in_flight() const override { return in_flight_.size(); }
    const Drops& drops() const override { return drops_; }
    std::vector<Parcel> unsettled() const override;
    Offer offer(std::string payload, std::uint32_t segments = 1) override;
    std::vector<Parcel> take(std::size_t limit_bytes) override;
    bool acknowledge(ParcelKey key) override { return settle(key) > 0; }
    bool refuse(ParcelKey key, const std::string& reason) override;
    bool settle_pack(ParcelKey key, const Refused& refused) override;
    void disconnected() override;
    std::size_t close() override { return segments_; }

private:
    struct Place {
        std::list<Parcel>::iterator parcel;
        bool in_flight = false;
    };

    /// Returns how many segments it held; 0 if it is not here.
    std::uint32_t settle(ParcelKey key);
    void evict(std::size_t cost, std::vector<Parcel>& evicted);
    Offer drop_new(const std::string& reason, std::uint32_t segments);

    std::uint64_t epoch_;
    OutboxLimits limits_;
    std::list<Parcel> waiting_;
    std::list<Parcel> in_flight_;
    std::unordered_map<ParcelKey, Place, ParcelKeyHash> places_;
    std::size_t bytes_ = 0;
    std::size_t segments_ = 0;
    std::size_t in_flight_bytes_ = 0;
    std::uint64_t next_sequence_ = 0;
    Drops drops_;
};

}  // namespace rl4sys::records
