/// Encodes sealed segments into outbox payloads, in a background thread.
#pragma once

#include <memory>

#include "client/courier.hpp"
#include "client/segment_queue.hpp"

namespace rl4sys::client {

/// Moves segments from the queue into the outbox, so that acting threads never wait for a disk.
class SegmentEncoder {
public:
    SegmentEncoder(SegmentQueue& queue, Courier& courier, AgentStatus& status)
        : queue_(queue), courier_(courier), status_(status) {}

    /// Encode until the queue is closed and empty.
    void run();

private:
    void encode(const SegmentBuffer& buffer);

    SegmentQueue& queue_;
    Courier& courier_;
    AgentStatus& status_;
};

}  // namespace rl4sys::client
