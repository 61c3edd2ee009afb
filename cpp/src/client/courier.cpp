#include "client/courier.hpp"

#include <utility>

#include "records/errors.hpp"
#include "rl4sys/log.hpp"
#include "wire/compression.hpp"

namespace rl4sys::client {

using records::OfferOutcome;
using wire::CallFailed;
using wire::Code;

namespace {

// Seconds until it is looked again whether the lineage of the learner is accepted.
constexpr double other_lineage_seconds = 1.0;

}  // namespace

Courier::Courier(std::unique_ptr<records::AnyOutbox> outbox, Pace pace, RandomSource rng, SharedSession& shared_session,
                 std::shared_ptr<wire::Transport> transport, double timeout, Clock clock, AgentStatus& status,
                 Governor& governor, double refused_seconds)
    : outbox_(std::move(outbox)),
      delivery_(*outbox_, pace, std::move(rng)),
      shared_session_(shared_session),
      transport_(std::move(transport)),
      timeout_(timeout),
      clock_(std::move(clock)),
      status_(status),
      governor_(governor),
      refused_seconds_(refused_seconds) {
    note_counts();
}

OutboxCounts Courier::counts() const {
    const std::lock_guard lock(counts_mutex_);
    return counts_;
}

void Courier::note_counts() {
    OutboxCounts now{outbox_->backlog_segments(), outbox_->backlog_bytes(), delivery_.acknowledged(), outbox_->drops()};
    const std::lock_guard lock(counts_mutex_);
    counts_ = std::move(now);
}

void Courier::offer(std::string payload, std::uint64_t ended, std::uint32_t segments) {
    std::unique_lock lock(mutex_);
    while (true) {
        OfferOutcome outcome = OfferOutcome::Accepted;
        try {
            outcome = outbox_->offer(payload, segments).outcome;
        } catch (const records::LogBroken& error) {
            // The payload is counted as a drop by the outbox; what is in memory is still delivered.
            status_.note(error.what());
            note_counts();
            return;
        }
        if (outcome != OfferOutcome::Full) {
            break;
        }
        if (stopping_) {
            status_.drop("unsent_at_close", segments);
            return;
        }
        changed_.wait(lock);
    }
    delivery_.offered(clock_(), ended);
    note_counts();
    changed_.notify_all();
}

void Courier::run() {
    while (true) {
        {
            std::unique_lock lock(mutex_);
            if (stopping_) {
                return;
            }
            const auto pause = delivery_.wait(clock_());
            if (!pause) {
                changed_.wait(lock);
                continue;
            }
            if (*pause > 0.0) {
                changed_.wait_for(lock, length_of(*pause));
                continue;
            }
        }
        deliver();
    }
}

bool Courier::flush(double deadline, bool until_unreachable) {
    std::unique_lock lock(mutex_);
    delivery_.flush();
    unreachable_ = false;
    changed_.notify_all();
    bool settled = true;
    while (outbox_->backlog() > 0) {
        const double left = deadline - clock_();
        if (left <= 0.0 || stopping_ || status_.stopped() || (until_unreachable && unreachable_)) {
            settled = false;
            break;
        }
        changed_.wait_for(lock, length_of(left));
    }
    delivery_.end_flush();
    return settled;
}

void Courier::stop() {
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
    }
    changed_.notify_all();
}

std::size_t Courier::close() {
    const std::lock_guard lock(mutex_);
    if (std::exchange(closed_, true)) {
        return 0;
    }
    try {
        return outbox_->close();
    } catch (const records::LogBroken& error) {
        status_.note(error.what());
        return 0;
    }
}

void Courier::deliver() {
    std::shared_ptr<const OpenSession> opened;
    wire::PushReply reply;
    try {
        opened = shared_session_.open();
        if (!governor_.lineage_problem().empty()) {
            // Experience of a lineage that the learner does not have would be refused for good: an operator decides.
            const std::lock_guard lock(mutex_);
            delivery_.pause(clock_() + other_lineage_seconds);
            return;
        }
        std::optional<wire::PushRequest> request;
        {
            const std::lock_guard lock(mutex_);
            request = delivery_.request(opened->session);
        }
        if (!request) {
            return;
        }
        if (opened->session.accepts_zstd) {
            wire::compress_push(*request);
        }
        reply = transport_->push(*request, timeout_);
    } catch (const CallFailed& error) {
        recover(error, opened);
        return;
    } catch (const wire::ContractViolation& error) {
        recover(CallFailed(Code::Internal, error.what()), opened);
        return;
    }
    {
        const std::lock_guard lock(mutex_);
        if (closed_) {
            return;
        }
        status_.succeeded(Caller::Courier);
        governor_.ask_share(share_of(reply.record_share));
        delivery_.answered(reply, clock_());
        note_counts();
        report_refusals();
    }
    changed_.notify_all();
}

void Courier::recover(const CallFailed& error, const std::shared_ptr<const OpenSession>& opened) {
    const Remedy what = remedy(error);
    // An invalid push is dropped and counted; an invalid join fails until the user repairs the cause.
    const bool is_refused = what == Remedy::Repair && (!opened || error.code != Code::InvalidArgument);
    if ((is_refused || what == Remedy::Join) && opened) {
        shared_session_.forget(*opened);
    }
    {
        const std::lock_guard lock(mutex_);
        if (closed_) {
            return;
        }
        unreachable_ = reach_of(error) == Reach::Unreachable;
        delivery_.failed(error, clock_(), is_refused ? refused_seconds_ : 0.0);
        note_counts();
        report_refusals();
        if (is_refused) {
            status_.refused(Caller::Courier, error.what());
        } else {
            status_.failed(error.what(), reach_of(error));
        }
    }
    changed_.notify_all();
}

void Courier::report_refusals() {
    const std::vector<std::string> refusals = delivery_.take_refusals();
    if (refusals.empty()) {
        return;
    }
    if (status_.first_refusal()) {
        log(LogLevel::Warning,
            "The server refuses some experience permanently: " + refusals.front() + " See health().drops.");
    }
    status_.note(refusals.back());
}

}  // namespace rl4sys::client
