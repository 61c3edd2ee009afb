/// Receives new weights in a background thread.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "client/agent_status.hpp"
#include "client/clock.hpp"
#include "client/governor.hpp"
#include "client/retries.hpp"
#include "client/server_policy.hpp"
#include "client/shared_session.hpp"
#include "wire/patches.hpp"

namespace rl4sys::client {

/// Publishes each new version; a version whose patch fails verification is pulled in full.
///
/// A version is never replaced by a lower one of the same lineage, and a policy of another lineage is kept until an
/// operator has decided.
class Watcher {
public:
    using OnPublish = std::function<void(const SharedSnapshot&)>;

    /// `server_policy` decides with `decide: server`; then no weights are pulled. Otherwise it is null.
    Watcher(SharedSession& shared_session, std::shared_ptr<wire::Transport> transport, Governor& governor,
            double timeout, RandomSource rng, Clock clock, AgentStatus& status, OnPublish on_publish,
            double refused_seconds = refused_pause, ServerPolicy* server_policy = nullptr);

    /// Watch for new versions until `stop` is called.
    void run();
    /// End `run` soon.
    void stop();
    /// Join and watch again: an operator may have accepted the lineage of the learner meanwhile.
    void renew();

private:
    using SharedOpenSession = std::shared_ptr<const OpenSession>;

    bool is_stopping() const;
    bool is_renewing() const;
    void pause(double seconds);
    /// Report a failed call; returns the least seconds to wait.
    double recover(const wire::CallFailed& error, const SharedOpenSession& opened);
    void catch_up(const SharedOpenSession& opened);
    /// Let the server decide in this session.
    void follow(const SharedOpenSession& opened);
    void watch(const OpenSession& opened);
    void receive(const OpenSession& opened, wire::NewVersion news);
    void pull(const OpenSession& opened, const SharedSnapshot& have);
    void apply(const OpenSession& opened, const SharedSnapshot& base, const wire::NextChunk& next,
               std::optional<std::uint64_t> target = std::nullopt);

    SharedSession& shared_session_;
    std::shared_ptr<wire::Transport> transport_;
    Governor& governor_;
    double timeout_;
    Backoff backoff_;
    Clock clock_;
    AgentStatus& status_;
    OnPublish on_publish_;
    double refused_seconds_;
    ServerPolicy* server_policy_;
    SharedOpenSession joined_;     ///< The session that was last found open.
    SharedOpenSession caught_up_;  ///< The session whose policy the present snapshot is known to be.
    mutable std::mutex mutex_;
    std::condition_variable stopped_;
    bool stopping_ = false;
    std::shared_ptr<wire::Stream<wire::NewVersion>> watching_;
    bool renewing_ = false;
};

}  // namespace rl4sys::client
