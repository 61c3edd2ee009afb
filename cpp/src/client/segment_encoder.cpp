#include "client/segment_encoder.hpp"

#include <string>
#include <utility>

#include "rl4sys/log.hpp"
#include "wire/segment_packs.hpp"

namespace rl4sys::client {

namespace {

constexpr std::size_t most_segments = 1024;               // Of one pack.
constexpr std::size_t most_bytes = std::size_t{1} << 20;  // Of its segments in memory; those of the pack are fewer.
constexpr std::size_t short_steps = 16;                   // A longer segment is sent alone, at little more cost.

}  // namespace

void SegmentEncoder::run() {
    Batch batch;
    while (std::unique_ptr<SegmentBuffer> taken = queue_.take()) {
        batch.push_back(std::move(taken));
        while (batch.size() < most_segments) {
            std::unique_ptr<SegmentBuffer> another = queue_.take_another();
            if (!another) {
                break;
            }
            batch.push_back(std::move(another));
        }
        for (std::size_t first = 0; first < batch.size();) {
            first = encode_from(batch, first);
        }
        for (std::unique_ptr<SegmentBuffer>& buffer : batch) {
            queue_.give_back(std::move(buffer));
        }
        batch.clear();
        queue_.replenish();
    }
}

std::size_t SegmentEncoder::encode_from(const Batch& batch, std::size_t first) {
    const SegmentBuffer& leader = *batch[first];
    std::vector<wire::SegmentView> views{leader.view()};
    std::size_t last = first + 1;
    std::uint64_t ended = leader.ending != Ending::Continues ? 1 : 0;
    for (std::size_t size = leader.cost(); leader.count <= short_steps && last < batch.size(); ++last) {
        const SegmentBuffer& next = *batch[last];
        size += next.cost();
        if (next.count > short_steps || size > most_bytes || next.form() != leader.form() ||
            next.snapshot->schema_hash != leader.snapshot->schema_hash) {
            break;
        }
        wire::SegmentView view = next.view();
        if (!wire::can_share_pack(views.front(), view)) {
            break;
        }
        views.push_back(std::move(view));
        ended += next.ending != Ending::Continues ? 1 : 0;
    }
    if (views.size() > 1) {
        try {
            offer(leader.snapshot->schema_hash + wire::encode_pack(*leader.form(), views), ended,
                  static_cast<std::uint32_t>(views.size()));
            return last;
        } catch (const wire::SegmentRefused&) {  // NOLINT(bugprone-empty-catch): alone, the sound ones are sent.
        }
    }
    for (std::size_t at = first; at < last; ++at) {
        encode(*batch[at]);
    }
    return last;
}

void SegmentEncoder::encode(const SegmentBuffer& buffer) {
    std::string payload = buffer.snapshot->schema_hash;
    try {
        // The server would refuse NaN and infinity; checking here saves the call.
        payload += wire::encode_segment(*buffer.form(), buffer.view());
    } catch (const wire::SegmentRefused& error) {
        if (status_.drop("not_finite")) {
            log(LogLevel::Warning, std::string("A segment that cannot be learned from is dropped: ") + error.what());
        }
        return;
    }
    offer(std::move(payload), buffer.ending != Ending::Continues ? 1 : 0, 1);
}

void SegmentEncoder::offer(std::string payload, std::uint64_t ended, std::uint32_t segments) {
    if (governor_.level() == ClientLevel::Record) {
        status_.drop("not_sent_at_level_record", segments);
        return;
    }
    courier_.offer(std::move(payload), ended, segments);
}

}  // namespace rl4sys::client
