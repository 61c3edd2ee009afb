/// The parts of an agent: everything behind the handles of rl4sys/agent.hpp.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/background_thread.hpp"
#include "client/control_order.hpp"
#include "client/courier.hpp"
#include "client/decision_batch.hpp"
#include "client/decision_times.hpp"
#include "client/governor.hpp"
#include "client/guard.hpp"
#include "client/health_reporter.hpp"
#include "client/lane_allocator.hpp"
#include "client/ordered_profile.hpp"
#include "client/policy_cache.hpp"
#include "client/segment_encoder.hpp"
#include "client/segment_queue.hpp"
#include "client/server_decision_batch.hpp"
#include "client/server_policy.hpp"
#include "client/shared_session.hpp"
#include "client/thinning.hpp"
#include "client/watcher.hpp"
#include "rl4sys/agent.hpp"

namespace rl4sys::client {

/// What differs from one start of a client to the next.
struct Start {
    std::uint64_t epoch = 0;          ///< 63 random bits, different at every start of the client.
    std::uint64_t first_episode = 0;  ///< Larger than any episode number of an earlier start.
    std::uint64_t seed = 0;
    Clock clock = steady_seconds;
    double refused_seconds = refused_pause;  ///< Between two attempts of a refused client.
};

/// A start at the present time, with a random seed unless the settings have one.
Start fresh_start(const ClientSettings& settings);

/// The parts of an agent, wired together. Threads share it, so that it outlives a hanging call.
class Core : public std::enable_shared_from_this<Core> {
public:
    Core(ClientSettings settings, std::shared_ptr<wire::Transport> transport, const Start& start,
         const Fallback& fallback);

    /// Start the threads. Call it once.
    void run();
    std::pair<Lane*, std::uint64_t> episode();
    void end(Lane& lane, std::uint64_t number, const Observation& final_observation, Ending ending, ArrayView mask,
             std::optional<double> now = std::nullopt);
    /// Decide for several open episodes, which are different ones: with one run of the policy, or one question to the
    /// server.
    std::vector<Action> act_many(std::vector<BatchRow> rows) {
        if (settings_.decide == DecisionPlace::Server) {
            return ServerDecisionBatch(shared_, std::move(rows)).decide();
        }
        return DecisionBatch(shared_, std::move(rows)).decide();
    }
    Health health() const;
    ClientLevel level() const { return governor_.level(); }
    /// @throws std::invalid_argument for `Off` without a fallback.
    void set_level(ClientLevel level);
    bool flush(double timeout);
    void close(std::optional<double> timeout);
    /// Act with the cached policy until the server sends a newer one.
    void use_cached_policy() { governor_.use_cached(clock_()); }
    /// Wait for a policy; returns the error that prevents one, if there is one. With a cached policy, or if
    /// `until_unreachable`, only as long as the server may answer.
    std::optional<std::string> wait_for_policy(double timeout, bool until_unreachable);
    bool has_policy() const { return governor_.snapshot() != nullptr; }
    bool is_forked() const;
    /// @throws std::logic_error in a forked process, where a lock may be held by a thread that does not exist.
    void require_unforked() const;
    const ClientSettings& settings() const { return settings_; }
    std::string last_error() const { return status_.last_error(); }
    /// How far the last failed call came; nothing if none failed.
    std::optional<Reach> reach() const { return status_.reach(); }

private:
    ClientSettings settings_;
    std::shared_ptr<wire::Transport> transport_;
    Clock clock_;
    double started_at_;
    AgentStatus status_;
    std::unique_ptr<ControlFile> control_file_;
    Governor governor_;
    Thinning thinning_;
    DecisionTimes times_;
    SegmentQueue queue_;
    AnswerWait answer_wait_;
    ServerPolicy server_policy_;
    SharedState shared_;
    LaneAllocator lanes_;
    SharedSession shared_session_;
    Courier courier_;
    std::unique_ptr<PolicyCache> cache_;
    Watcher watcher_;
    SegmentEncoder encoder_;
    Guard guard_;
    OrderedProfile profile_;
    HealthReporter reporter_;
    std::vector<std::unique_ptr<BackgroundThread>> threads_;
    std::atomic<bool> closed_ = false;
};

}  // namespace rl4sys::client
