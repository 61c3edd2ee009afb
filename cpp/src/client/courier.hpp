/// Pushes the outbox to the server from a background thread.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>

#include "client/agent_status.hpp"
#include "client/clock.hpp"
#include "client/delivery.hpp"
#include "client/governor.hpp"
#include "client/shared_session.hpp"

namespace rl4sys::client {

/// The counters of the outbox.
struct OutboxCounts {
    std::size_t backlog = 0;
    std::size_t backlog_bytes = 0;
    std::uint64_t acknowledged = 0;
    records::Drops drops;
};

/// Makes a `Delivery` thread-safe and runs it. The lock is not held during a call.
class Courier {
public:
    Courier(std::unique_ptr<records::AnyOutbox> outbox, Pace pace, RandomSource rng, SharedSession& shared_session,
            std::shared_ptr<wire::Transport> transport, double timeout, Clock clock, AgentStatus& status,
            Governor& governor, double refused_seconds = refused_pause);

    /// As of the last change; it never waits for a disk.
    OutboxCounts counts() const;
    /// Put a payload of so many segments, with which `ended` episodes end, into the outbox; with `overflow: block`,
    /// wait while it is full.
    void offer(std::string payload, std::uint64_t ended, std::uint32_t segments = 1);
    /// Deliver until `stop` is called.
    void run();
    /// Send at once and wait until everything is settled; false at the deadline or when sending is impossible, with
    /// `until_unreachable` also when a call from now on cannot reach the server.
    bool flush(double deadline, bool until_unreachable = false);
    /// End `run` after the present call.
    void stop();
    /// Close the outbox, even if a call still hangs; returns how many segments are lost with it.
    std::size_t close();

private:
    /// Keep the counters for `counts`; the lock of the outbox, which is held while a disk works, is held here.
    void note_counts();
    void deliver();
    void recover(const wire::CallFailed& error, const std::shared_ptr<const OpenSession>& opened);
    void report_refusals();

    std::unique_ptr<records::AnyOutbox> outbox_;
    Delivery delivery_;
    SharedSession& shared_session_;
    std::shared_ptr<wire::Transport> transport_;
    double timeout_;
    Clock clock_;
    AgentStatus& status_;
    Governor& governor_;
    double refused_seconds_;
    bool stopping_ = false;
    bool closed_ = false;
    bool unreachable_ = false;  ///< Whether a call since the last flush could not reach the server.
    mutable std::mutex counts_mutex_;
    OutboxCounts counts_;
    mutable std::mutex mutex_;
    std::condition_variable changed_;
};

}  // namespace rl4sys::client
