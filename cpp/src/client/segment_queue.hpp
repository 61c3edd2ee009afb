/// The bounded queue of sealed segments between the threads that act and the thread that encodes.
#pragma once

#include <array>
#include <condition_variable>
#include <memory>
#include <mutex>

#include "client/agent_status.hpp"
#include "client/segment_buffer.hpp"
#include "rl4sys/settings.hpp"

namespace rl4sys::client {

/// A bounded queue, so that acting threads never wait for encoding or for a disk; it also keeps spare buffers.
/// Its lock is never held for long, and adding or taking a buffer allocates nothing.
class SegmentQueue {
public:
    /// `linger`: seconds that the first segment waits for others, so that encoding interrupts acting less often.
    SegmentQueue(std::size_t capacity_bytes, Overflow overflow, AgentStatus& status, double linger = 0.0);

    /// Segments in the queue or being encoded.
    std::size_t waiting() const;
    /// A buffer to record into, which `steps` of the most `length` fit into, reused where one of this kind is free.
    std::unique_ptr<SegmentBuffer> blank(const std::shared_ptr<const wire::SegmentFormat>& form, std::size_t length,
                                         std::size_t steps);
    /// Take back a buffer whose contents are no longer needed.
    void give_back(std::unique_ptr<SegmentBuffer> buffer);
    /// Make buffers of the sizes of which few were free, so that acting threads need not when encoding comes late.
    void replenish();
    /// Add a segment. Waits only with `overflow: block`, while the queue is full.
    void post(std::unique_ptr<SegmentBuffer> buffer);
    /// Wait for the next segment; null once the queue is closed and empty.
    std::unique_ptr<SegmentBuffer> take();
    /// The next segment if one waits, besides those taken before; null otherwise.
    std::unique_ptr<SegmentBuffer> take_another();
    /// Wait until every segment is encoded; false if that takes longer than `timeout` seconds.
    bool drained(double timeout);
    /// Wake all waiting threads and accept nothing more; segments in the queue can still be taken.
    void close();

private:
    /// Free buffers of one size.
    struct Spare {
        SegmentBufferList list;
        std::shared_ptr<const wire::SegmentFormat> form;  ///< Of those that were last asked for; null before the first.
        std::size_t length = 0;
        std::size_t rows = 0;
        std::size_t bytes = 0;   ///< Of each; 0 before one came back.
        std::size_t fewest = 0;  ///< The fewest that were free at any time since `replenish` looked.
    };

    static constexpr std::size_t sizes = 32;

    bool is_urgent() const { return closed_ || hurried_ > 0 || 2 * bytes_ > capacity_; }
    bool is_full(std::size_t size) const { return bytes_ + size > capacity_; }
    void keep(std::unique_ptr<SegmentBuffer> buffer);
    std::unique_ptr<SegmentBuffer> pop();

    std::size_t capacity_;
    Overflow overflow_;
    AgentStatus& status_;
    double linger_;
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    SegmentBufferList queue_;
    std::size_t bytes_ = 0;
    std::array<Spare, sizes> spare_;
    std::size_t spare_bytes_ = 0;
    int hurried_ = 0;
    bool busy_ = false;
    bool closed_ = false;
};

}  // namespace rl4sys::client
