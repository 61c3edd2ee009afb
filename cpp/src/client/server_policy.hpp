/// The policy of a learner that decides on the server: asks with Act, and makes snapshots to record under.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "client/agent_status.hpp"
#include "client/answer_wait.hpp"
#include "client/segment_buffer.hpp"
#include "client/shared_session.hpp"
#include "client/snapshot.hpp"
#include "wire/decisions.hpp"

namespace rl4sys::client {

/// One decision to ask for: the present row of a buffer, and the policy's memory before it.
struct AskedRow {
    std::uint64_t lane = 0;
    std::uint64_t step = 0;  ///< For which the server draws random numbers.
    const SegmentBuffer* buffer = nullptr;
    const std::vector<float>* carry = nullptr;
};

/// What became of a question.
enum class Answered : std::uint8_t {
    Decided,
    NoAnswer,   ///< The server did not decide in time, or was not asked because it had not answered just before.
    Impossible  ///< The policy cannot decide on these observations.
};

/// Decisions for the asked rows, and the version that took them.
struct ServerDecision {
    Answered answered = Answered::NoAnswer;
    std::string problem;  ///< Why there is no decision.
    SharedSnapshot snapshot;
    std::vector<wire::DecidedRow> rows;
};

/// Decides by asking. Thread-safe: no lock is held during a call.
class ServerPolicy {
public:
    using SharedOpenSession = std::shared_ptr<const OpenSession>;
    using OnVersion = std::function<void(const SharedSnapshot&)>;
    using OnLostSession = std::function<void(const OpenSession&)>;

    /// `timeout`: most seconds of one question. `on_version` is called with the snapshot of each other version,
    /// `on_lost_session` with a session that the server does not know.
    ServerPolicy(std::shared_ptr<wire::Transport> transport, AnswerWait& wait, AgentStatus& status, double timeout,
                 OnVersion on_version, OnLostSession on_lost_session);

    /// Ask in this session from now on; returns the snapshot of its version.
    SharedSnapshot join(const SharedOpenSession& opened);
    /// The snapshot of a version that the server announced; null if this is not the session to ask in.
    SharedSnapshot announced(const OpenSession& opened, std::uint64_t version);
    /// How many rows one question may have.
    std::size_t most_rows() const;
    double timeout() const { return timeout_; }
    /// Decide for rows that have one interface.
    ServerDecision decide(const std::vector<AskedRow>& rows, double timeout);

private:
    struct Asking {
        SharedOpenSession opened;
        SharedInterface interface;
    };

    Asking asking() const;
    SharedSnapshot snapshot_of(const Asking& asking, std::uint64_t version);
    ServerDecision failed(const OpenSession& opened, const wire::CallFailed& error);

    std::shared_ptr<wire::Transport> transport_;
    AnswerWait& wait_;
    AgentStatus& status_;
    double timeout_;
    OnVersion on_version_;
    OnLostSession on_lost_session_;
    mutable std::mutex mutex_;
    Asking asking_;
    /// By version: the same object each time, so that it does not cut segments.
    std::map<std::uint64_t, SharedSnapshot> snapshots_;
    SharedSnapshot newest_;
};

}  // namespace rl4sys::client
