#include "client/health_reporter.hpp"

#include <algorithm>
#include <utility>

#include "client/retries.hpp"

namespace rl4sys::client {
namespace {

using wire::CallFailed;
using wire::Code;

// Seconds between two looks for a session, and for one with a server that takes reports.
constexpr double no_session_seconds = 0.25;
constexpr double idle_seconds = 10.0;
// Seconds between two attempts to join again while the learner has another lineage.
constexpr double renew_seconds = 10.0;
constexpr double calls_of_a_lease = 3.0;

}  // namespace

HealthReporter::HealthReporter(SharedSession& shared_session, std::shared_ptr<wire::Transport> transport,
                               Governor& governor, AgentStatus& status, Clock clock, const ClientSettings& settings,
                               std::uint64_t epoch, std::function<wire::ClientReport()> report, OrderedProfile& profile,
                               std::function<void()> renew)
    : shared_session_(shared_session),
      transport_(std::move(transport)),
      governor_(governor),
      status_(status),
      clock_(std::move(clock)),
      epoch_(epoch),
      lease_(settings.lease),
      timeout_(lease_ ? std::min(settings.call_seconds(), *lease_ / calls_of_a_lease) : settings.call_seconds()),
      report_(std::move(report)),
      profile_(profile),
      renew_(std::move(renew)),
      renewed_at_(clock_()) {}

void HealthReporter::run() {
    while (true) {
        {
            const double seconds = pause();
            std::unique_lock lock(mutex_);
            changed_.wait_for(lock, length_of(seconds), [this] { return stopping_ || awake_; });
            awake_ = false;
            if (stopping_) {
                return;
            }
        }
        const auto opened = shared_session_.opened();
        if (!governor_.lineage_problem().empty() && clock_() - renewed_at_ >= renew_seconds) {
            renewed_at_ = clock_();
            renew_();
        } else if (opened) {
            call(*opened);
        }
    }
}

void HealthReporter::stop() {
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
    }
    changed_.notify_all();
}

void HealthReporter::wake() {
    {
        const std::lock_guard lock(mutex_);
        awake_ = true;
    }
    changed_.notify_all();
}

void HealthReporter::call(const OpenSession& opened) {
    try {
        if (opened.report_seconds > 0.0 && !is_unknown_) {
            send(opened);
        } else if (lease_) {
            ask(opened);
        }
    } catch (const CallFailed& error) {
        if (error.code == Code::Unimplemented) {
            is_unknown_ = true;
        } else if (remedy(error) == Remedy::Join) {
            shared_session_.forget(opened);
        }
    } catch (const wire::ContractViolation& error) {
        status_.note(error.what());
    }
}

double HealthReporter::pause() const {
    const auto opened = shared_session_.opened();
    const double asked = !opened || is_unknown_ ? 0.0 : opened->report_seconds;
    const double leased = lease_ ? *lease_ / calls_of_a_lease : 0.0;
    if (asked > 0.0 && leased > 0.0) {
        return std::min(asked, leased);
    }
    if (asked > 0.0 || leased > 0.0) {
        return std::max(asked, leased);
    }
    return opened ? idle_seconds : no_session_seconds;
}

void HealthReporter::send(const OpenSession& opened) {
    wire::ReportRequest request{opened.session.id, epoch_, report_(), profile_.progress()};
    const wire::ReportReply reply = transport_->report(request, timeout_);
    profile_.answered(request.profile, reply.profile);
    status_.succeeded(Caller::Reporter);
    governor_.ask_share(share_of(reply.record_share));
    status_.warn(reply.warning);
    if (reply.control) {
        const bool kept = governor_.keeps_version();
        governor_.obey(ControlOrder::from_message(*reply.control));
        if (kept && !governor_.keeps_version()) {
            // The watcher pulls what was published while an operator had frozen the version.
            renew_();
        }
    }
}

void HealthReporter::ask(const OpenSession& opened) {
    wire::PullRequest request{opened.session.id, std::nullopt};
    if (const SharedSnapshot snapshot = governor_.snapshot()) {
        request.have = snapshot->version;
    }
    const auto chunks = transport_->pull(request, timeout_);
    chunks->next();
    status_.succeeded(Caller::Reporter);
}

}  // namespace rl4sys::client
