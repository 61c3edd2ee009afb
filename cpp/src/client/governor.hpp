/// Makes the acting plan from the newest policy, the operator's order, the kill file, the lease and the lineage.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>

#include "client/acting_plan.hpp"
#include "client/control_order.hpp"
#include "client/shared_session.hpp"
#include "rl4sys/acting_mode.hpp"
#include "rl4sys/client_level.hpp"

namespace rl4sys::client {

/// Holds the present plan. Acting threads read it by reference; background threads change what it is made of.
///
/// A decision compares one number; only if it has changed does it take the lock, to copy a pointer. The lock is never
/// held during a call, a wait or an access to a file.
class Governor {
public:
    using OnOrder = std::function<void(const ControlOrder&)>;

    /// `order`: the latest order of an earlier start. `on_order` is called with each later one. `asks`: whether the
    /// policy decides on the server.
    explicit Governor(ActingMode mode = ActingMode::Explore, ControlOrder order = {}, OnOrder on_order = nullptr,
                      bool asks = false);

    /// Increases with every change of the plan.
    std::uint64_t generation() const noexcept { return generation_.load(std::memory_order_acquire); }
    SharedPlan plan() const;
    /// The share of episodes to record.
    double record_share() const noexcept { return record_share_.load(std::memory_order_relaxed); }
    /// The policy that is acted with.
    SharedSnapshot snapshot() const;
    /// The policy that is acted with, or else that of an earlier start.
    SharedSnapshot known() const;
    /// When the present version was published, by the publisher's clock.
    double since() const;
    /// The latest order of an operator.
    ControlOrder order() const;
    /// Why the server's versions are not followed; empty if they are.
    std::string lineage_problem() const;
    /// How much of the client works.
    ClientLevel level() const;
    void set_level(ClientLevel level);
    /// Whether the present version may not be replaced: an operator froze it, the learner has another lineage, or a
    /// profile measures a level that takes no versions.
    bool keeps_version() const;

    /// Remember the policy of an earlier start, until there is another one to act with.
    void set_cached(SharedSnapshot cached);
    /// Replace the policy; later decisions use this one.
    void publish(SharedSnapshot snapshot, double now);
    /// Act with the policy of an earlier start, unless there is another one; false if there is none at all.
    bool use_cached(double now);
    /// Whether there is a cached policy that is not used yet.
    bool has_cached() const;
    /// Take what the reply to Join says. Called for every join, by the thread that joined.
    void joined(const OpenSession& opened);
    /// The plan for a decision that the server did not answer: the fallback takes it.
    ActingPlan without_answer(const ActingPlan& plan) const;
    /// The plan for a decision that the system took by itself.
    ActingPlan of_incumbent(const ActingPlan& plan) const;
    /// Take the share of episodes that the server asks to record.
    void ask_share(double share) noexcept { record_share_.store(share, std::memory_order_relaxed); }
    /// Obey an order that is later than every one before; false for any other.
    bool obey(const ControlOrder& order);
    /// Note whether the kill file exists.
    void set_kill_file(bool exists);
    /// Note whether the server was silent for longer than the lease.
    void set_lease_over(bool over);

    /// Wake all waiting threads.
    void wake();
    /// Wait until there is a policy or `holds`, which is checked when something changes and when `wake` is called.
    void wait(double seconds, const std::function<bool()>& holds);

private:
    SharedSnapshot known_now() const { return snapshot_ ? snapshot_ : cached_; }
    /// Whether the level records decisions.
    bool records_now() const { return level_ == ClientLevel::Record || level_ == ClientLevel::Full; }
    /// Make the plan again; called with the lock.
    void replan();

    ActingMode mode_;
    bool asks_;
    OnOrder on_order_;
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    ControlOrder order_;
    SharedSnapshot snapshot_;
    SharedSnapshot cached_;
    double since_ = 0.0;
    std::string lineage_problem_;
    bool kill_file_ = false;
    bool lease_over_ = false;
    ClientLevel level_ = ClientLevel::Full;
    bool accepts_fallback_ = false;
    bool accepts_incumbent_ = false;
    SharedPlan plan_ = std::make_shared<const ActingPlan>();
    std::atomic<std::uint64_t> generation_ = 1;
    std::atomic<double> record_share_ = 1.0;
};

}  // namespace rl4sys::client
