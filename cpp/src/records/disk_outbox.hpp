/// An outbox on disk that survives its client: every parcel and every settlement is a record in a log.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "records/outbox.hpp"
#include "records/record_log.hpp"

namespace rl4sys::records {

/// A new epoch, unique even after the directory was lost: 63 random bits.
std::uint64_t fresh_epoch();

/// An `Outbox` that recovers its unsettled parcels, with their keys, after the client was killed.
///
/// It keeps them in memory as well, so the capacity bounds both; the files take at most about twice that. Parcels
/// survive a killed client, not a power cut. A Python client can take over the directory, and vice versa.
class DiskOutbox final : public AnyOutbox {
public:
    /// @throws LogInUse, RecordsDamaged, FileError
    DiskOutbox(const Path& directory, std::uint64_t epoch, OutboxLimits limits = {},
               std::size_t file_bytes = std::size_t{4} << 20,
               std::shared_ptr<Files> files = std::make_shared<DiskFiles>());

    std::size_t backlog() const override { return outbox_->backlog(); }
    std::size_t backlog_segments() const override { return outbox_->backlog_segments(); }
    std::size_t backlog_bytes() const override { return outbox_->backlog_bytes(); }
    std::size_t in_flight() const override { return outbox_->in_flight(); }
    const Drops& drops() const override { return outbox_->drops(); }
    std::vector<Parcel> unsettled() const override { return outbox_->unsettled(); }
    /// Accepted means written. A full disk drops it (`disk_full`); a broken one also throws `LogBroken`.
    Offer offer(std::string payload, std::uint32_t segments = 1) override;
    std::vector<Parcel> take(std::size_t limit_bytes) override { return outbox_->take(limit_bytes); }
    bool acknowledge(ParcelKey key) override;
    bool refuse(ParcelKey key, const std::string& reason) override;
    bool settle_pack(ParcelKey key, const Refused& refused) override;
    void disconnected() override { outbox_->disconnected(); }
    /// Unsettled parcels are recovered at the next start, so nothing is lost.
    std::size_t close() override;

    /// Bytes of the files now.
    std::size_t disk_bytes() const { return log_.size(); }

private:
    /// Unsettled parcels with the number of the record that holds each, in the order of these numbers.
    class Places {
    public:
        void put(ParcelKey key, std::uint64_t number);
        void remove(ParcelKey key);
        void clear();
        std::uint64_t oldest(std::uint64_t otherwise) const;

    private:
        using Entry = std::pair<ParcelKey, std::uint64_t>;
        std::list<Entry> order_;
        std::unordered_map<ParcelKey, std::list<Entry>::iterator, ParcelKeyHash> found_;
    };

    std::vector<Parcel> fold();
    void note_settled(const std::vector<Parcel>& parcels);
    void settled(ParcelKey key, std::uint32_t segments);
    void tidy();
    void rewrite();

    std::size_t file_bytes_;
    RecordLog log_;
    Places places_;
    std::unique_ptr<Outbox> outbox_;
    std::vector<std::string> notes_;  ///< Settlements that are not in the log yet.
};

}  // namespace rl4sys::records
