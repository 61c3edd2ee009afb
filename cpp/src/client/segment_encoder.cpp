#include "client/segment_encoder.hpp"

#include <string>
#include <utility>

#include "rl4sys/log.hpp"
#include "wire/segments.hpp"

namespace rl4sys::client {

void SegmentEncoder::run() {
    while (std::unique_ptr<SegmentBuffer> buffer = queue_.take()) {
        encode(*buffer);
        queue_.give_back(std::move(buffer));
    }
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
    courier_.offer(std::move(payload), buffer.ending != Ending::Continues);
}

}  // namespace rl4sys::client
