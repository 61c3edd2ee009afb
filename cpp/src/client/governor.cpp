#include "client/governor.hpp"

#include <utility>

#include "client/clock.hpp"
#include "rl4sys/log.hpp"

namespace rl4sys::client {

Governor::Governor(ActingMode mode, ControlOrder order, OnOrder on_order, bool asks)
    : mode_(mode), asks_(asks), on_order_(std::move(on_order)), order_(std::move(order)) {
    const std::lock_guard lock(mutex_);
    replan();
}

SharedPlan Governor::plan() const {
    const std::lock_guard lock(mutex_);
    return plan_;
}

SharedSnapshot Governor::snapshot() const {
    const std::lock_guard lock(mutex_);
    return snapshot_;
}

SharedSnapshot Governor::known() const {
    const std::lock_guard lock(mutex_);
    return known_now();
}

double Governor::since() const {
    const std::lock_guard lock(mutex_);
    return since_;
}

ControlOrder Governor::order() const {
    const std::lock_guard lock(mutex_);
    return order_;
}

std::string Governor::lineage_problem() const {
    const std::lock_guard lock(mutex_);
    return lineage_problem_;
}

ClientLevel Governor::level() const {
    const std::lock_guard lock(mutex_);
    return level_;
}

void Governor::set_level(ClientLevel level) {
    const std::lock_guard lock(mutex_);
    level_ = level;
    replan();
}

bool Governor::keeps_version() const {
    const std::lock_guard lock(mutex_);
    const bool is_frozen = order_.mode == ControlMode::Frozen || level_ != ClientLevel::Full;
    return (is_frozen && known_now()) || !lineage_problem_.empty();
}

void Governor::set_cached(SharedSnapshot cached) {
    const std::lock_guard lock(mutex_);
    cached_ = std::move(cached);
}

void Governor::publish(SharedSnapshot snapshot, double now) {
    // The older plan and snapshots are destroyed after the lock is released: a decision must not wait for it.
    SharedPlan before;
    SharedSnapshot cached;
    const std::lock_guard lock(mutex_);
    before = plan_;
    std::swap(snapshot_, snapshot);
    std::swap(cached_, cached);
    since_ = now;
    replan();
}

bool Governor::has_cached() const {
    const std::lock_guard lock(mutex_);
    return cached_ != nullptr;
}

bool Governor::use_cached(double now) {
    const std::lock_guard lock(mutex_);
    if (!snapshot_ && cached_) {
        snapshot_ = std::exchange(cached_, nullptr);
        since_ = now;
        replan();
    }
    return snapshot_ != nullptr;
}

void Governor::joined(const OpenSession& opened) {
    std::string problem;
    bool is_new = false;
    {
        const std::lock_guard lock(mutex_);
        if (const SharedSnapshot present = known_now(); present && !opened.continues(*present)) {
            problem = "The learner '" + opened.session.learner + "' has lineage " + opened.lineage +
                      "; this client acts with version " + std::to_string(present->version) + " of " +
                      present->lineage +
                      ", whose history the server lost or replaced. The client keeps its policy and records nothing. "
                      "Restore a backup of the server, or accept the new lineage there.";
        }
        is_new = problem != lineage_problem_;
        lineage_problem_ = problem;
        accepts_fallback_ = opened.accepts_fallback;
        accepts_incumbent_ = opened.accepts_incumbent;
        ask_share(opened.record_share);
        replan();
    }
    if (is_new && !problem.empty()) {
        log(LogLevel::Error, problem);
    } else if (is_new) {
        log(LogLevel::Info,
            "The learner '" + opened.session.learner + "' continues or replaces the lineage of this client.");
    }
    if (opened.order) {
        obey(*opened.order);
    }
}

bool Governor::obey(const ControlOrder& order) {
    bool changed = false;
    {
        const std::lock_guard lock(mutex_);
        if (order.sequence <= order_.sequence) {
            return false;
        }
        changed = order.mode != order_.mode;
        order_ = order;
        replan();
    }
    if (changed) {
        log(LogLevel::Warning, "An operator ordered " + order.text() + ".");
    }
    // Obeyed before it is written: a slow disk must not delay it, and the server repeats it at the next join.
    if (on_order_) {
        on_order_(order);
    }
    return true;
}

void Governor::set_kill_file(bool exists) {
    {
        const std::lock_guard lock(mutex_);
        if (std::exchange(kill_file_, exists) == exists) {
            return;
        }
        replan();
    }
    log(LogLevel::Warning, exists ? "The kill file exists: the policy is off." : "The kill file is gone.");
}

void Governor::set_lease_over(bool over) {
    {
        const std::lock_guard lock(mutex_);
        if (std::exchange(lease_over_, over) == over) {
            return;
        }
        replan();
    }
    log(LogLevel::Warning, over ? "The lease is over: the policy is off." : "The lease is renewed.");
}

void Governor::wake() {
    {
        // A waiting thread either sees what changed, or is waiting already.
        const std::lock_guard lock(mutex_);
    }
    changed_.notify_all();
}

void Governor::wait(double seconds, const std::function<bool()>& holds) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, length_of(seconds), [&] { return snapshot_ != nullptr || holds(); });
}

ActingPlan Governor::without_answer(const ActingPlan& plan) const {
    const std::lock_guard lock(mutex_);
    ActingPlan other = plan;
    other.off = "no_answer";
    other.decided_by = DecidedBy::Fallback;
    other.records = plan.records && accepts_fallback_;
    return other;
}

ActingPlan Governor::of_incumbent(const ActingPlan& plan) const {
    const std::lock_guard lock(mutex_);
    ActingPlan other = plan;
    other.off = "";
    other.decided_by = DecidedBy::Incumbent;
    other.records = mode_ == ActingMode::Explore && lineage_problem_.empty() && accepts_incumbent_ && records_now();
    other.observes = false;
    return other;
}

void Governor::replan() {
    ActingPlan plan;
    plan.snapshot = snapshot_;
    if (order_.mode == ControlMode::Off) {
        plan.off = "control";
    } else if (kill_file_) {
        plan.off = "kill_file";
    } else if (lease_over_) {
        plan.off = "lease";
    } else if (!snapshot_) {
        plan.off = "no_policy";
    } else if (level_ == ClientLevel::Off) {
        plan.off = "level";
    } else {
        plan.off = "";
    }
    const bool observes = mode_ == ActingMode::Observe;
    plan.decided_by = !plan.off.empty() || observes ? DecidedBy::Fallback : DecidedBy::Policy;
    plan.records = mode_ == ActingMode::Explore && snapshot_ && lineage_problem_.empty() && records_now() &&
                   (plan.decided_by == DecidedBy::Policy || accepts_fallback_);
    plan.observes = observes && plan.off.empty();
    plan.asks = asks_;
    if (!(plan == *plan_)) {
        plan_ = std::make_shared<const ActingPlan>(std::move(plan));
        generation_.fetch_add(1, std::memory_order_release);
    }
    changed_.notify_all();
}

}  // namespace rl4sys::client
