/// Carries the outbox to the server, in a thread of its own.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>

#include "client/agent_status.hpp"
#include "client/clock.hpp"
#include "client/delivery.hpp"
#include "client/shared_session.hpp"

namespace rl4sys::client {

/// What an operator wants to know about the outbox.
struct OutboxCounts {
    std::size_t backlog = 0;
    std::size_t backlog_bytes = 0;
    std::uint64_t acknowledged = 0;
    records::Drops drops;
};

/// Lets several threads use a `Delivery`. Its lock is not held while a call is on its way.
class Courier {
public:
    Courier(std::unique_ptr<records::AnyOutbox> outbox, Pace pace, RandomSource rng, SharedSession& shared_session,
            std::shared_ptr<wire::Transport> transport, double timeout, Clock clock, AgentStatus& status,
            double refused_seconds = refused_pause);

    OutboxCounts counts() const;
    /// Put a payload into the outbox; waits while it is full, where the overflow policy is to block.
    void offer(std::string payload, bool episode_ended);
    /// Deliver until `stop`.
    void run();
    /// Send at once, and wait until all is settled; false if there was no time or no way.
    bool flush(double deadline);
    /// End `run` after the call that is on its way.
    void stop();
    /// Let go of the outbox, also if a call still hangs; returns how many segments are lost with it.
    std::size_t close();

private:
    void deliver();
    void recover(const wire::CallFailed& error, const std::shared_ptr<const OpenSession>& opened);
    void tell_refusals();

    std::unique_ptr<records::AnyOutbox> outbox_;
    Delivery delivery_;
    SharedSession& shared_session_;
    std::shared_ptr<wire::Transport> transport_;
    double timeout_;
    Clock clock_;
    AgentStatus& status_;
    double refused_seconds_;
    bool stopping_ = false;
    bool closed_ = false;
    mutable std::mutex mutex_;
    std::condition_variable changed_;
};

}  // namespace rl4sys::client
