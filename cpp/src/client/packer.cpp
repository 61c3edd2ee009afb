#include "client/packer.hpp"

#include <string>
#include <utility>

#include "rl4sys/log.hpp"
#include "wire/segments.hpp"

namespace rl4sys::client {

void Packer::run() {
    while (std::unique_ptr<Draft> draft = handoff_.take()) {
        pack(*draft);
        handoff_.give_back(std::move(draft));
    }
}

void Packer::pack(const Draft& draft) {
    std::string payload = draft.snapshot->schema_hash;
    try {
        // The server would refuse NaN and infinity; finding them here saves the way.
        payload += wire::encode_segment(*draft.form(), draft.view());
    } catch (const wire::SegmentRefused& error) {
        if (tally_.drop("not_finite")) {
            log(LogLevel::Warning, std::string("Experience that nobody can learn from is dropped: ") + error.what());
        }
        return;
    }
    courier_.offer(std::move(payload), draft.ending != Ending::Continues);
}

}  // namespace rl4sys::client
