/// The session with the server, shared by the courier and the watcher; either may reopen it.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "client/control_order.hpp"
#include "client/delivery.hpp"
#include "client/snapshot.hpp"
#include "rl4sys/settings.hpp"
#include "wire/calls.hpp"

namespace rl4sys::client {

/// A validated reply to Join: the session, and the policy to act with, unless that decides on the server.
struct OpenSession {
    /// @throws CallFailed where the policy decides only on the server, ContractViolation for one that cannot be run
    ///         here.
    OpenSession(wire::JoinReply reply, const ClientSettings& settings);

    DeliverySession session;
    SharedInterface interface;
    std::string schema_hash;
    std::string lineage;
    std::vector<std::string> replaced_lineages;
    std::uint64_t version = 0;
    std::size_t max_steps = 0;
    std::size_t most_rows = 1;  ///< Of one question, where the server decides.
    std::optional<ControlOrder> order;
    double report_seconds = 0.0;
    double record_share = 1.0;
    bool accepts_fallback = false;
    bool accepts_incumbent = false;

    /// Whether the weights of a snapshot belong to this policy.
    bool fits(const Snapshot& snapshot) const;
    /// Whether the learner has the history of a snapshot, or an operator replaced that by the learner's.
    ///
    /// Where one side knows no lineages, versions are followed in any order.
    bool continues(const Snapshot& snapshot) const;
    /// Whether a version is not newer than that of a snapshot, or null, of the same lineage.
    bool goes_back(std::uint64_t other, const Snapshot* snapshot) const;
};

/// The share of episodes to record, from a message, in which 0 stands for all.
double share_of(double record_share);

/// Whether a policy observes and acts as the settings ask for. A mask may always be left out.
bool is_wanted(const PolicyInterface& interface, const ClientSettings& settings);

/// Joins when there is no session. One thread joins at a time; the other waits and uses the same session.
class SharedSession {
public:
    using Known = std::function<SharedSnapshot()>;
    using OnJoin = std::function<void(const OpenSession&)>;

    /// `known` gives the policy that the client has; `on_join` is called with each session that was opened.
    SharedSession(std::shared_ptr<wire::Transport> transport, const ClientSettings& settings, std::uint64_t epoch,
                  Known known, OnJoin on_join);

    /// The session that was opened and not forgotten; null if there is none.
    std::shared_ptr<const OpenSession> opened() const;

    /// The session; joins if there is none. @throws CallFailed, ContractViolation
    std::shared_ptr<const OpenSession> open();
    /// Forget a session that the server no longer knows.
    void forget(const OpenSession& opened);

private:
    std::shared_ptr<wire::Transport> transport_;
    const ClientSettings& settings_;
    wire::JoinRequest request_;
    Known known_;
    OnJoin on_join_;
    std::mutex joining_;        ///< Held while a thread joins.
    mutable std::mutex mutex_;  ///< Of `opened_`, held for a moment only.
    std::shared_ptr<const OpenSession> opened_;
};

}  // namespace rl4sys::client
