/// Reports the health of a client to the server in a background thread, and takes what the reply says.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "client/agent_status.hpp"
#include "client/clock.hpp"
#include "client/governor.hpp"
#include "client/ordered_profile.hpp"
#include "client/shared_session.hpp"

namespace rl4sys::client {

/// Calls Report as often as the server asks for it, or three times per lease.
class HealthReporter {
public:
    /// `report` makes the report; `profile` carries out orders to measure this client; `renew` joins again.
    HealthReporter(SharedSession& shared_session, std::shared_ptr<wire::Transport> transport, Governor& governor,
                   AgentStatus& status, Clock clock, const ClientSettings& settings, std::uint64_t epoch,
                   std::function<wire::ClientReport()> report, OrderedProfile& profile, std::function<void()> renew);

    /// Report until `stop` is called.
    void run();
    /// Report once, or ask for a sign of life if the server takes no reports.
    void call(const OpenSession& opened);
    /// Report soon.
    void wake();
    /// End `run` soon.
    void stop();

private:
    double pause() const;
    void send(const OpenSession& opened);
    void ask(const OpenSession& opened);

    SharedSession& shared_session_;
    std::shared_ptr<wire::Transport> transport_;
    Governor& governor_;
    AgentStatus& status_;
    Clock clock_;
    std::uint64_t epoch_;
    std::optional<double> lease_;
    double timeout_;
    std::function<wire::ClientReport()> report_;
    OrderedProfile& profile_;
    std::function<void()> renew_;
    double renewed_at_;
    bool is_unknown_ = false;  ///< Whether the server does not know this call.
    std::mutex mutex_;
    std::condition_variable changed_;
    bool stopping_ = false;
    bool awake_ = false;  ///< Whether there is something to report at once.
};

}  // namespace rl4sys::client
