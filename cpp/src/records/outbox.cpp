#include "records/outbox.hpp"

#include <stdexcept>
#include <utility>

namespace rl4sys::records {

Outbox::Outbox(std::uint64_t epoch, OutboxLimits limits, const std::vector<Parcel>& backlog)
    : epoch_(epoch), limits_(limits) {
    for (const Parcel& parcel : backlog) {
        if (parcel.key.epoch == epoch) {
            throw std::invalid_argument("Epoch " + std::to_string(epoch) +
                                        " has parcels from an earlier start; draw a fresh one at every start.");
        }
        waiting_.push_back(parcel);
        places_[parcel.key] = {std::prev(waiting_.end()), false};
        bytes_ += parcel.cost();
        segments_ += parcel.segments;
    }
}

std::vector<Parcel> Outbox::unsettled() const {
    std::vector<Parcel> parcels(in_flight_.begin(), in_flight_.end());
    parcels.insert(parcels.end(), waiting_.begin(), waiting_.end());
    return parcels;
}

Offer Outbox::offer(std::string payload, std::uint32_t segments) {
    Parcel parcel{{epoch_, next_sequence_}, std::make_shared<const std::string>(std::move(payload)), segments};
    const std::size_t cost = parcel.cost();
    if (cost > limits_.capacity_bytes) {
        return drop_new("too_large", segments);
    }
    Offer offer;
    if (bytes_ + cost > limits_.capacity_bytes) {
        if (limits_.overflow == Overflow::Block) {
            return {OfferOutcome::Full, std::nullopt, {}};
        }
        // Parcels in flight stay, since they may have arrived; if they alone fill the outbox, evicting others is
        // useless.
        if (limits_.overflow == Overflow::DropNewest || in_flight_bytes_ + cost > limits_.capacity_bytes) {
            return drop_new("overflow_newest", segments);
        }
        evict(cost, offer.evicted);
    }
    next_sequence_ += segments;
    waiting_.push_back(parcel);
    places_[parcel.key] = {std::prev(waiting_.end()), false};
    bytes_ += cost;
    segments_ += segments;
    offer.parcel = std::move(parcel);
    return offer;
}

std::vector<Parcel> Outbox::take(std::size_t limit_bytes) {
    std::vector<Parcel> taken;
    std::size_t length = 0;
    while (!waiting_.empty() && in_flight_.size() < limits_.window) {
        const Parcel& parcel = waiting_.front();
        if (!taken.empty() && length + parcel.payload->size() > limit_bytes) {
            break;
        }
        length += parcel.payload->size();
        in_flight_bytes_ += parcel.cost();
        places_[parcel.key].in_flight = true;
        taken.push_back(parcel);
        in_flight_.splice(in_flight_.end(), waiting_, waiting_.begin());
    }
    return taken;
}

bool Outbox::refuse(ParcelKey key, const std::string& reason) {
    const std::uint32_t segments = settle(key);
    if (segments > 0) {
        drops_[reason] += segments;
    }
    return segments > 0;
}

bool Outbox::settle_pack(ParcelKey key, const Refused& refused) {
    const std::uint32_t segments = settle(key);
    for (auto each = refused.lower_bound(key.sequence); each != refused.end() && each->first < key.sequence + segments;
         ++each) {
        ++drops_[each->second];
    }
    return segments > 0;
}

void Outbox::disconnected() {
    for (const Parcel& parcel : in_flight_) {
        places_[parcel.key].in_flight = false;
    }
    waiting_.splice(waiting_.begin(), in_flight_);
    in_flight_bytes_ = 0;
}

std::uint32_t Outbox::segments_of(ParcelKey key) const {
    const auto place = places_.find(key);
    return place == places_.end() ? 0 : place->second.parcel->segments;
}

std::uint32_t Outbox::settle(ParcelKey key) {
    const auto place = places_.find(key);
    if (place == places_.end()) {
        return 0;
    }
    const std::size_t cost = place->second.parcel->cost();
    const std::uint32_t segments = place->second.parcel->segments;
    bytes_ -= cost;
    segments_ -= segments;
    if (place->second.in_flight) {
        in_flight_bytes_ -= cost;
        in_flight_.erase(place->second.parcel);
    } else {
        waiting_.erase(place->second.parcel);
    }
    places_.erase(place);
    return segments;
}

void Outbox::evict(std::size_t cost, std::vector<Parcel>& evicted) {
    while (!waiting_.empty() && bytes_ + cost > limits_.capacity_bytes) {
        evicted.push_back(waiting_.front());
        drops_["overflow_oldest"] += settle(evicted.back().key);
    }
}

Offer Outbox::drop_new(const std::string& reason, std::uint32_t segments) {
    drops_[reason] += segments;
    return {OfferOutcome::Dropped, std::nullopt, {}};
}

}  // namespace rl4sys::records
