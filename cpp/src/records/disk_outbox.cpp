#include "records/disk_outbox.hpp"

#include <algorithm>
#include <random>
#include <string_view>

#include "records/bytes.hpp"

namespace rl4sys::records {
namespace {

constexpr unsigned char is_parcel = 1;
constexpr unsigned char is_settled = 2;
constexpr unsigned char is_pack = 3;
constexpr std::size_t parcel_bytes = 17;
constexpr std::size_t pack_bytes = 21;
constexpr std::size_t settled_bytes = 25;

std::string encode(const Parcel& parcel) {
    std::string record;
    record.reserve(pack_bytes + parcel.payload->size());
    put(record, parcel.segments == 1 ? is_parcel : is_pack, 1);
    put64(record, parcel.key.epoch);
    put64(record, parcel.key.sequence);
    if (parcel.segments != 1) {
        put(record, parcel.segments, 4);
    }
    record.append(*parcel.payload);
    return record;
}

std::string encode_settled(std::uint64_t epoch, std::uint64_t begin, std::uint64_t end) {
    std::string record;
    put(record, is_settled, 1);
    put64(record, epoch);
    put64(record, begin);
    put64(record, end);
    return record;
}

}  // namespace

std::uint64_t fresh_epoch() {
    std::random_device device;
    return (std::uint64_t{device()} << 32 | device()) >> 1;
}

DiskOutbox::DiskOutbox(const Path& directory, std::uint64_t epoch, OutboxLimits limits, std::size_t file_bytes,
                       std::shared_ptr<Files> files)
    : file_bytes_(file_bytes), log_(directory, file_bytes, std::move(files)) {
    outbox_ = std::make_unique<Outbox>(epoch, limits, fold());
}

Offer DiskOutbox::offer(std::string payload, std::uint32_t segments) {
    Offer offer = outbox_->offer(std::move(payload), segments);
    if (!offer.parcel) {
        return offer;
    }
    const ParcelKey key = offer.parcel->key;
    const std::size_t earlier = notes_.size();
    note_settled(offer.evicted);
    // Evictions last: if a crash tears this append, no parcel was evicted in vain.
    std::vector<std::string> records(notes_.begin(), notes_.begin() + static_cast<std::ptrdiff_t>(earlier));
    records.push_back(encode(*offer.parcel));
    records.insert(records.end(), notes_.begin() + static_cast<std::ptrdiff_t>(earlier), notes_.end());
    try {
        places_.put(key, log_.append(records) + earlier);
    } catch (const LogFull&) {
        outbox_->refuse(key, "disk_full");
        return {OfferOutcome::Dropped, std::nullopt, std::move(offer.evicted)};
    } catch (const LogBroken&) {
        outbox_->refuse(key, "disk_failed");
        throw;
    }
    notes_.clear();
    tidy();
    return offer;
}

bool DiskOutbox::acknowledge(ParcelKey key) {
    return settle_pack(key, {});
}

bool DiskOutbox::settle_pack(ParcelKey key, const Refused& refused) {
    const std::uint32_t segments = outbox_->segments_of(key);
    outbox_->settle_pack(key, refused);
    settled(key, segments);
    return segments > 0;
}

bool DiskOutbox::refuse(ParcelKey key, const std::string& reason) {
    const std::uint32_t segments = outbox_->segments_of(key);
    outbox_->refuse(key, reason);
    settled(key, segments);
    return segments > 0;
}

std::size_t DiskOutbox::close() {
    log_.close();
    return 0;
}

void DiskOutbox::settled(ParcelKey key, std::uint32_t segments) {
    if (segments == 0) {
        return;
    }
    places_.remove(key);
    notes_.push_back(encode_settled(key.epoch, key.sequence, key.sequence + segments));
    tidy();
}

void DiskOutbox::note_settled(const std::vector<Parcel>& parcels) {
    // Neighbouring parcels share a note.
    for (std::size_t first = 0; first < parcels.size();) {
        std::size_t last = first;
        const ParcelKey begin = parcels[first].key;
        std::uint64_t end = begin.sequence;
        while (last < parcels.size() && parcels[last].key == ParcelKey{begin.epoch, end}) {
            places_.remove(parcels[last].key);
            end += parcels[last].segments;
            ++last;
        }
        notes_.push_back(encode_settled(begin.epoch, begin.sequence, end));
        first = last;
    }
}

void DiskOutbox::tidy() {
    // What a failing disk loses here is sent again after a restart and ignored by the server as a repeat; the
    // next offer reports the failure.
    try {
        if (!notes_.empty()) {
            log_.append(notes_);
            notes_.clear();
        }
        const std::size_t kept = std::max(outbox_->limits().capacity_bytes, backlog_bytes());
        if (log_.size() > 2 * kept + 2 * file_bytes_) {
            rewrite();
        }
    } catch (const LogFull&) {    // NOLINT(bugprone-empty-catch): the notes are kept for the next attempt.
    } catch (const LogBroken&) {  // NOLINT(bugprone-empty-catch)
    }
    try {
        log_.prune(places_.oldest(log_.end()));
    } catch (const LogBroken&) {  // NOLINT(bugprone-empty-catch)
    }
}

void DiskOutbox::rewrite() {
    // An old parcel keeps too many files: every unsettled parcel is rewritten at the end of the log.
    const std::vector<Parcel> parcels = outbox_->unsettled();
    std::vector<std::string> records;
    std::transform(parcels.begin(), parcels.end(), std::back_inserter(records), encode);
    std::uint64_t number = log_.append(records);
    places_.clear();
    for (const Parcel& parcel : parcels) {
        places_.put(parcel.key, number++);
    }
}

std::vector<Parcel> DiskOutbox::fold() {
    std::list<Parcel> parcels;
    std::unordered_map<ParcelKey, std::list<Parcel>::iterator, ParcelKeyHash> found;
    log_.read_all([&](std::uint64_t number, std::string_view record) {
        const int kind = record.empty() ? 0 : static_cast<unsigned char>(record[0]);
        const std::size_t header = kind == is_pack ? pack_bytes : parcel_bytes;
        if ((kind == is_parcel || kind == is_pack) && record.size() >= header) {
            const ParcelKey key{get64(record, 1), get64(record, 9)};
            const auto segments = kind == is_pack ? static_cast<std::uint32_t>(get(record, 17, 4)) : 1U;
            // Rewritten: the parcel keeps its turn, and its place is the new one, in the order of the places.
            places_.put(key, number);
            if (found.find(key) == found.end()) {
                parcels.push_back({key, std::make_shared<const std::string>(record.substr(header)), segments});
                found[key] = std::prev(parcels.end());
            }
        } else if (kind == is_settled && record.size() == settled_bytes) {
            const std::uint64_t epoch = get64(record, 1);
            const std::uint64_t end = get64(record, 17);
            for (std::uint64_t sequence = get64(record, 9); sequence < end; ++sequence) {
                if (const auto parcel = found.find({epoch, sequence}); parcel != found.end()) {
                    parcels.erase(parcel->second);
                    found.erase(parcel);
                }
                places_.remove({epoch, sequence});
            }
        } else {
            throw RecordsDamaged(
                "Record " + std::to_string(number) +
                " of the outbox is neither a parcel nor a settlement. It was written by a newer version, "
                "or this is not an outbox: use that version, or choose another directory.");
        }
    });
    return {parcels.begin(), parcels.end()};
}

void DiskOutbox::Places::put(ParcelKey key, std::uint64_t number) {
    remove(key);
    order_.emplace_back(key, number);
    found_[key] = std::prev(order_.end());
}

void DiskOutbox::Places::remove(ParcelKey key) {
    if (const auto place = found_.find(key); place != found_.end()) {
        order_.erase(place->second);
        found_.erase(place);
    }
}

void DiskOutbox::Places::clear() {
    order_.clear();
    found_.clear();
}

std::uint64_t DiskOutbox::Places::oldest(std::uint64_t otherwise) const {
    return order_.empty() ? otherwise : order_.front().second;
}

}  // namespace rl4sys::records
