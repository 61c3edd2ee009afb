/// The session with the server, shared by the courier and the watcher; either may reopen it.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "client/delivery.hpp"
#include "client/snapshot.hpp"
#include "rl4sys/settings.hpp"
#include "wire/calls.hpp"

namespace rl4sys::client {

/// A validated reply to Join: the session, and the policy to act with.
struct OpenSession {
    /// @throws CallFailed where the policy decides on the server, ContractViolation for one that cannot be run here.
    explicit OpenSession(wire::JoinReply reply);

    DeliverySession session;
    std::shared_ptr<const PolicySpec> spec;
    std::shared_ptr<const PolicySpec> exploit;  ///< Null if the server did not send it.
    std::string spec_text;                      ///< Canonical: equal policies have equal texts.
    std::shared_ptr<const wire::SegmentFormat> form;
    std::string schema_hash;
    std::string lineage;
    std::vector<std::string> replaced_lineages;
    std::uint64_t version = 0;
    std::size_t max_steps = 0;
    std::size_t weight_count = 0;
    std::optional<wire::Control> control;
    double report_seconds = 0.0;
    double record_share = 1.0;
    bool accepts_fallback = false;
    /// Whether the client keeps a policy of another lineage, which no operator has replaced by this one.
    bool keeps_other_lineage = false;

    /// Whether the weights of a snapshot belong to this policy.
    bool fits(const Snapshot& snapshot) const;
    /// Whether both have the same lineage, in which versions only increase.
    bool continues(const Snapshot& snapshot) const { return !lineage.empty() && snapshot.lineage == lineage; }
    /// Whether a client that acts with this snapshot follows the versions of this session. Those of servers that know
    /// no lineages are followed in any order.
    bool follows(const Snapshot& snapshot) const;
};

/// Joins when there is no session. One thread joins at a time; the other waits and uses the same session.
class SharedSession {
public:
    using OnJoin = std::function<void(const OpenSession&)>;

    /// `on_join` is called for each new session before anything uses it.
    SharedSession(std::shared_ptr<wire::Transport> transport, const ClientSettings& settings, std::uint64_t epoch,
                  const NewestSnapshot& newest, OnJoin on_join = nullptr);

    /// The session; joins if there is none. @throws CallFailed, ContractViolation
    std::shared_ptr<const OpenSession> open();
    /// Forget a session that the server no longer knows.
    void forget(const OpenSession& opened);

private:
    void require_wanted(const OpenSession& opened) const;

    std::shared_ptr<wire::Transport> transport_;
    wire::JoinRequest request_;
    double timeout_;
    const NewestSnapshot& newest_;
    OnJoin on_join_;
    std::mutex joining_;
    std::shared_ptr<const OpenSession> opened_;
};

}  // namespace rl4sys::client
