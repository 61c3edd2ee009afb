/// Turns sealed buffers into the bytes that are kept and sent, in a thread of its own.
#pragma once

#include <memory>

#include "client/courier.hpp"
#include "client/segment_queue.hpp"

namespace rl4sys::client {

/// Stands between acting threads, which must not wait for a disk, and the outbox, which may be on one.
class SegmentEncoder {
public:
    SegmentEncoder(SegmentQueue& queue, Courier& courier, AgentStatus& status)
        : queue_(queue), courier_(courier), status_(status) {}

    /// Pack until the queue is closed and empty.
    void run();

private:
    void pack(const SegmentBuffer& buffer);

    SegmentQueue& queue_;
    Courier& courier_;
    AgentStatus& status_;
};

}  // namespace rl4sys::client
