/// Receives new weights in a background thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "client/agent_status.hpp"
#include "client/clock.hpp"
#include "client/retries.hpp"
#include "client/shared_session.hpp"
#include "client/snapshot.hpp"
#include "wire/patches.hpp"

namespace rl4sys::client {

/// Publishes each new version; a version whose patch fails verification is pulled in full.
///
/// A version is never replaced by a lower one of the same lineage, and a policy of another lineage is kept until an
/// operator has decided.
class Watcher {
public:
    using OnPublish = std::function<void(const SharedSnapshot&)>;

    Watcher(SharedSession& shared_session, std::shared_ptr<wire::Transport> transport, NewestSnapshot& newest,
            double timeout, RandomSource rng, Clock clock, AgentStatus& status, OnPublish on_publish,
            double refused_seconds = refused_pause);

    /// Watch for new versions until `stop` is called.
    void run();
    /// End `run` soon.
    void stop();
    /// Join again soon: an operator may have decided about the lineage of this client's policy.
    void rejoin();
    /// Whether the server was reached once, and its policy received unless the client keeps another one.
    bool has_caught_up() const { return has_caught_up_; }

private:
    using SharedOpenSession = std::shared_ptr<const OpenSession>;

    bool is_stopping() const;
    bool is_rejoining() const;
    void pause(double seconds);
    /// Report a failed call; returns the least seconds to wait.
    double recover(const wire::CallFailed& error, const SharedOpenSession& opened);
    void catch_up(const SharedOpenSession& opened);
    void watch(const OpenSession& opened);
    void receive(const OpenSession& opened, wire::NewVersion news);
    void keep_other_lineage(const OpenSession& opened, const Snapshot& snapshot);
    void pull(const OpenSession& opened, const SharedSnapshot& have);
    void apply(const OpenSession& opened, const SharedSnapshot& base, const wire::NextChunk& next,
               std::optional<std::uint64_t> target = std::nullopt);

    SharedSession& shared_session_;
    std::shared_ptr<wire::Transport> transport_;
    NewestSnapshot& newest_;
    double timeout_;
    Backoff backoff_;
    Clock clock_;
    AgentStatus& status_;
    OnPublish on_publish_;
    double refused_seconds_;
    SharedOpenSession joined_;     ///< The session that was last found open.
    SharedOpenSession caught_up_;  ///< The session whose policy the present snapshot is known to be.
    std::atomic<bool> has_caught_up_ = false;
    mutable std::mutex mutex_;
    std::condition_variable stopped_;
    bool stopping_ = false;
    std::shared_ptr<wire::Stream<wire::NewVersion>> watching_;
    bool rejoining_ = false;
};

}  // namespace rl4sys::client
