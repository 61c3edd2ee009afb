/// Where sealed buffers wait until the encoder has time: acting threads leave them here and go on.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>

#include "client/agent_status.hpp"
#include "client/segment_buffer.hpp"
#include "rl4sys/settings.hpp"

namespace rl4sys::client {

/// A bounded queue between the threads that act and the one that packs, and the columns that can be used again.
/// Its lock is never held for long, and leaving or taking a buffer allocates nothing.
class SegmentQueue {
public:
    /// `linger` are the seconds that a first buffer waits for others, so that acting is disturbed less often.
    SegmentQueue(std::size_t capacity_bytes, Overflow overflow, AgentStatus& status, double linger = 0.0);

    /// Buffers here or in the encoder's hands.
    std::size_t waiting() const;
    /// Columns to record into, used before if there are some of this format and length.
    std::unique_ptr<SegmentBuffer> blank(const std::shared_ptr<const wire::SegmentFormat>& form, std::size_t length);
    /// The contents are of no use any more; the columns may be.
    void give_back(std::unique_ptr<SegmentBuffer> buffer);
    /// Leave a buffer. Waits only if the overflow policy is to block and everything is full.
    void post(std::unique_ptr<SegmentBuffer> buffer);
    /// The next buffer; waits for one, and gives null once the queue is closed and empty.
    std::unique_ptr<SegmentBuffer> take();
    /// Wait until everything was packed; false if it was not in time.
    bool drained(double timeout);
    /// Nobody waits any more; what is here can still be taken.
    void close();

private:
    bool is_urgent() const { return closed_ || hurried_ > 0 || 2 * bytes_ > capacity_; }
    bool is_full(std::size_t size) const { return bytes_ + size > capacity_; }
    void keep(std::unique_ptr<SegmentBuffer> buffer);

    std::size_t capacity_;
    Overflow overflow_;
    AgentStatus& status_;
    double linger_;
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    SegmentBufferList queue_;
    std::size_t bytes_ = 0;
    SegmentBufferList spare_;
    std::size_t spare_bytes_ = 0;
    int hurried_ = 0;
    bool busy_ = false;
    bool closed_ = false;
};

}  // namespace rl4sys::client
