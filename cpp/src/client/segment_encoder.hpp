/// Encodes sealed segments into outbox payloads, in a background thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "client/courier.hpp"
#include "client/governor.hpp"
#include "client/segment_queue.hpp"

namespace rl4sys::client {

/// Moves segments from the queue into the outbox, so that acting threads never wait for a disk. Short ones that wait
/// together become one pack: of a one-step episode, headers would be most of the cost.
class SegmentEncoder {
public:
    /// At the level `record` of the governor, what is encoded is dropped, to measure what recording costs.
    SegmentEncoder(SegmentQueue& queue, Courier& courier, AgentStatus& status, const Governor& governor)
        : queue_(queue), courier_(courier), status_(status), governor_(governor) {}

    /// Encode until the queue is closed and empty.
    void run();

private:
    using Batch = std::vector<std::unique_ptr<SegmentBuffer>>;

    /// Encode the segments from `first` on that one pack can hold; returns the one after them.
    std::size_t encode_from(const Batch& batch, std::size_t first);
    void encode(const SegmentBuffer& buffer);
    void offer(std::string payload, std::uint64_t ended, std::uint32_t segments);

    SegmentQueue& queue_;
    Courier& courier_;
    AgentStatus& status_;
    const Governor& governor_;
};

}  // namespace rl4sys::client
