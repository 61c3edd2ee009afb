/// The session with the server, shared by the courier and the watcher; either may reopen it.
#pragma once

#include <memory>
#include <mutex>
#include <string>

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
    std::string spec_text;  ///< Canonical: equal policies have equal texts.
    std::shared_ptr<const wire::SegmentFormat> form;
    std::string schema_hash;
    std::uint64_t version = 0;
    std::size_t max_steps = 0;
    std::size_t weight_count = 0;

    /// Whether the weights of a snapshot belong to this policy.
    bool fits(const Snapshot& snapshot) const;
};

/// Joins when there is no session. One thread joins at a time; the other waits and uses the same session.
class SharedSession {
public:
    SharedSession(std::shared_ptr<wire::Transport> transport, const ClientSettings& settings);

    /// The session; joins if there is none. @throws CallFailed, ContractViolation
    std::shared_ptr<const OpenSession> open();
    /// Forget a session that the server no longer knows.
    void forget(const OpenSession& opened);

private:
    void require_wanted(const OpenSession& opened) const;

    std::shared_ptr<wire::Transport> transport_;
    wire::JoinRequest request_;
    double timeout_;
    std::mutex joining_;
    std::shared_ptr<const OpenSession> opened_;
};

}  // namespace rl4sys::client
