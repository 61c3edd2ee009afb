/// The session with the server, which both background threads need and either may open again.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "client/delivery.hpp"
#include "client/snapshot.hpp"
#include "rl4sys/settings.hpp"
#include "wire/calls.hpp"

namespace rl4sys::client {

/// An answer to Join, checked: the session, and the policy to act with.
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

    /// Whether weights that the client has belong to this policy.
    bool fits(const Snapshot& snapshot) const;
};

/// Joins when there is no session; one thread at a time, the other then finds it done.
class SharedSession {
public:
    SharedSession(std::shared_ptr<wire::Transport> transport, const ClientSettings& settings);

    /// The session; joins if there is none. @throws CallFailed, ContractViolation
    std::shared_ptr<const OpenSession> open();
    /// The server does not know this session any more.
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
