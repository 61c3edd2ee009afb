#include "client/segment_encoder.hpp"

#include <string>
#include <utility>

#include "rl4sys/log.hpp"
#include "wire/segments.hpp"

namespace rl4sys::client {

void SegmentEncoder::run() {
    while (std::unique_ptr<SegmentBuffer> buffer = queue_.take()) {
        pack(*buffer);
        queue_.give_back(std::move(buffer));
    }
}

void SegmentEncoder::pack(const SegmentBuffer& buffer) {
    std::string payload = buffer.snapshot->schema_hash;
    try {
        // The server would refuse NaN and infinity; finding them here saves the way.
        payload += wire::encode_segment(*buffer.form(), buffer.view());
    } catch (const wire::SegmentRefused& error) {
        if (status_.drop("not_finite")) {
            log(LogLevel::Warning, std::string("Experience that nobody can learn from is dropped: ") + error.what());
        }
        return;
    }
    courier_.offer(std::move(payload), buffer.ending != Ending::Continues);
}

}  // namespace rl4sys::client
