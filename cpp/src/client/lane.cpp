#include "client/lane.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <utility>

#include "client/forks.hpp"

namespace rl4sys::client {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr const char* too_large =
    "The policy's decision for this observation is NaN or infinite: its values are too large. Scale or clip them.";

constexpr const char* episode_ended = "This episode has ended; start another one with agent.episode().";

/// A decision of the server as one of a policy; it is valid as long as the row is.
Decision decision_of(const wire::DecidedRow& decided) {
    Decision decision;
    decision.choices = decided.choices.empty() ? nullptr : decided.choices.data();
    decision.numbers = decided.choices.empty() ? decided.numbers.data() : nullptr;
    decision.carry = decided.carry.empty() ? nullptr : decided.carry.data();
    return decision;
}

}  // namespace

Lane::Lane(const SharedState& shared, std::uint64_t index, std::uint64_t first_episode)
    : shared_(shared), index_(index), episode_(first_episode - 1), record_(shared) {}

std::uint64_t Lane::begin() {
    const std::lock_guard lock(mutex_);
    ended_ = has_acted_ = false;
    record_.begin();
    std::fill(carry_.begin(), carry_.end(), 0.0F);
    return ++episode_;
}

Action Lane::act(std::uint64_t episode, const Observation& observation, ArrayView mask,
                 std::optional<double> now) noexcept {
    try {
        if (shared_.forks != forks()) {
            return failed(Problem::Forked, explain_fork());
        }
        SegmentBufferList sealed;
        Action action;
        {
            const std::lock_guard lock(mutex_);
            if (ended_ || episode != episode_) {
                return failed(Problem::EpisodeEnded, episode_ended);
            }
            const std::int64_t before = record_.decisions();
            const bool is_timed = shared_.times.wants(before);
            const auto began = is_timed ? SteadyClock::now() : SteadyClock::time_point();
            if (std::string problem = record_.follow(now); !problem.empty()) {
                return failed(Problem::BadTime, std::move(problem));
            }
            read_plan();
            action = act_by_plan(observation, mask);
            if (now && action) {
                record_.decided_at(*now);
            }
            record_.seal_due(before, sealed);
            if (is_timed && action) {
                const std::chrono::nanoseconds took = SteadyClock::now() - began;
                shared_.times.add(before, static_cast<std::uint64_t>(took.count()));
            }
        }
        // Outside the lock: with `overflow: block` posting may wait, and rewards must not.
        post(sealed, episode);
        return action;
    } catch (const std::exception& error) {
        return failed(Problem::Failed, error.what());
    } catch (...) {
        return failed(Problem::Failed, "Something was thrown that is not a std::exception.");
    }
}

void Lane::took(std::uint64_t episode, const Observation& observation, const FallbackAction& action, ArrayView mask,
                std::optional<double> now) {
    if (shared_.forks != forks()) {
        throw std::logic_error(explain_fork());
    }
    SegmentBufferList sealed;
    {
        const std::lock_guard lock(mutex_);
        if (ended_ || episode != episode_) {
            throw std::logic_error(episode_ended);
        }
        const std::int64_t before = record_.decisions();
        if (const std::string problem = record_.follow(now); !problem.empty()) {
            throw std::invalid_argument(problem);
        }
        read_plan();
        take_over(shared_.governor.of_incumbent(*plan_), observation, action, mask);
        if (now) {
            record_.decided_at(*now);
        }
        record_.seal_due(before, sealed);
    }
    shared_.status.incumbent_decisions.fetch_add(1, std::memory_order_relaxed);
    post(sealed, episode);
}

/// Record what the system did.
void Lane::take_over(const ActingPlan& plan, const Observation& observation, const FallbackAction& action,
                     ArrayView mask) {
    if (!plan.snapshot) {
        record_.leave_out();
        return;
    }
    const PolicyInterface& interface = *plan.snapshot->interface;
    ActionValues given;
    if (const std::string problem = interface.actions.read(action, given); !problem.empty()) {
        throw std::invalid_argument(problem);
    }
    if (const std::string problem = record_.observe(plan, observation, mask, carry_); !problem.empty()) {
        shared_.status.bad_input(problem);
        if (shared_.on_bad_input == BadInputChoice::Raise) {
            throw std::invalid_argument(problem);
        }
        record_.leave_out();
        return;
    }
    if (const std::string problem = record_.refused(interface.actions.choices(given)); !problem.empty()) {
        throw std::invalid_argument(problem);
    }
    record_.buffer().record_given(interface.actions.row(given));
    record_.took();
    action_ = std::move(given);
    has_acted_ = true;
}

void Lane::reward(std::uint64_t episode, double value, std::optional<std::int64_t> decision, bool is_final) {
    if (!(std::abs(value) <= static_cast<double>(std::numeric_limits<float>::max()))) {
        throw std::invalid_argument("Got the reward " + std::to_string(value) +
                                    "; expected a finite number. Leave it out if it is not known.");
    }
    SegmentBufferList sealed;
    std::unique_lock lock(mutex_);
    if (episode != episode_) {
        // The lane already has another episode; this one is sealed completely.
        shared_.status.late_rewards.fetch_add(1, std::memory_order_relaxed);
        return;
    }
    const std::int64_t decided = record_.decisions();
    const std::int64_t index = decision.value_or(decided - 1);
    if (index < 0 || index >= decided) {
        throw std::invalid_argument("There is no decision " + std::to_string(index) + "; this episode has taken " +
                                    std::to_string(decided) + " of them.");
    }
    if (record_.reward(index, static_cast<float>(value)) && is_final) {
        record_.settle(index, sealed);
    }
    lock.unlock();
    post(sealed, episode);
}

void Lane::withdraw(std::uint64_t episode, std::int64_t decision) {
    const std::lock_guard lock(mutex_);
    if (!ended_ && episode == episode_) {
        record_.withdraw(decision);
    }
}

bool Lane::end(std::uint64_t episode, const Observation& final_observation, Ending ending, ArrayView mask,
               std::optional<double> now) {
    if (ending == Ending::Continues) {
        throw std::invalid_argument("An episode ends as Terminated or Truncated; one that continues needs no end.");
    }
    SegmentBufferList sealed;
    {
        const std::lock_guard lock(mutex_);
        if (ended_ || episode != episode_) {
            return false;
        }
        if (now) {
            if (const std::string problem = record_.follow(now); !problem.empty()) {
                throw std::invalid_argument(problem);
            }
        }
        const bool raises = shared_.on_bad_input == BadInputChoice::Raise;
        if (const std::string problem = record_.finish(final_observation, ending, mask, !raises); !problem.empty()) {
            shared_.status.bad_input(problem);
            if (raises) {
                throw std::invalid_argument(problem);
            }
        }
        ended_ = true;
        record_.seal_all(sealed);
        plan_.reset();
        generation_ = 0;
    }
    post(sealed, episode);
    return true;
}

std::int64_t Lane::decision(std::uint64_t episode) const {
    const std::lock_guard lock(mutex_);
    return episode == episode_ ? record_.decisions() - 1 : -1;
}

bool Lane::ended(std::uint64_t episode) const {
    const std::lock_guard lock(mutex_);
    return ended_ || episode != episode_;
}

std::optional<std::uint64_t> Lane::open_episode() const {
    const std::lock_guard lock(mutex_);
    return ended_ ? std::nullopt : std::optional(episode_);
}

void Lane::read_plan() {
    const std::uint64_t generation = shared_.governor.generation();
    if (generation == generation_) {
        return;
    }
    plan_ = shared_.governor.plan();
    generation_ = generation;
    if (plan_->snapshot && plan_->snapshot->interface != interface_) {
        interface_ = plan_->snapshot->interface;
        carry_.assign(interface_->carry_size, 0.0F);
        // Random numbers are keyed by step, so none repeats.
        noise_.emplace(shared_.seed, StreamKey{shared_.client, "agent", index_}, interface_->noise_size);
    }
}

Action Lane::act_by_plan(const Observation& observation, ArrayView mask) {
    if (plan_->decided_by == DecidedBy::Fallback || !plan_->snapshot) {
        return act_by_fallback(*plan_, observation, mask);
    }
    if (plan_->asks) {
        if (std::string problem = record_.observe_undecided(*plan_, observation, mask, carry_); !problem.empty()) {
            return act_despite(Problem::BadObservation, std::move(problem), observation, mask);
        }
        ServerPolicy& policy = shared_.server_policy;
        return take_answer(policy.decide({asked()}, policy.timeout()), 0, observation, mask);
    }
    if (std::string problem = record_.observe(*plan_, observation, mask, carry_); !problem.empty()) {
        return act_despite(Problem::BadObservation, std::move(problem), observation, mask);
    }
    return take_decision(decision_of_policy(thread_policy(present_snapshot())), observation, mask);
}

Action Lane::take_decision(const Decision& decision, const Observation& observation, ArrayView mask) {
    switch (decision.outcome) {
        case Outcome::Decided: break;
        case Outcome::NothingAllowed:
            return act_despite(Problem::NothingAllowed, describe(decision.outcome), observation, mask);
        case Outcome::NotFinite: return act_despite(Problem::BadObservation, too_large, observation, mask);
        case Outcome::IndexOutOfRange:
            return act_despite(Problem::BadObservation, describe(decision.outcome), observation, mask);
    }
    SegmentBuffer& buffer = record_.buffer();
    buffer.record(decision);
    log_prob_ = buffer.form()->extras.empty() ? std::nullopt : std::optional(decision.log_prob);
    record_.took();
    remember(decision);
    buffer.snapshot->interface->actions.finish(decision, action_);
    has_acted_ = true;
    Action action = present_action();
    action.version_ = plan_->snapshot->version;
    action.log_prob_ = log_prob_;
    return action;
}

std::optional<Action> Lane::observe_for_batch(std::uint64_t episode, const Observation& observation, ArrayView mask,
                                              std::optional<double> now) {
    if (ended_ || episode != episode_) {
        return failed(Problem::EpisodeEnded, episode_ended);
    }
    if (std::string problem = record_.follow(now); !problem.empty()) {
        return failed(Problem::BadTime, std::move(problem));
    }
    read_plan();
    if (plan_->decided_by == DecidedBy::Fallback || !plan_->snapshot) {
        return act_by_fallback(*plan_, observation, mask);
    }
    std::string problem = plan_->asks ? record_.observe_undecided(*plan_, observation, mask, carry_)
                                      : record_.observe(*plan_, observation, mask, carry_);
    if (!problem.empty()) {
        return act_despite(Problem::BadObservation, std::move(problem), observation, mask);
    }
    return std::nullopt;
}

Action Lane::take_answer(const ServerDecision& decision, std::size_t row, const Observation& observation,
                         ArrayView mask) {
    switch (decision.answered) {
        case Answered::Decided: break;
        case Answered::Impossible: return act_despite(Problem::BadObservation, decision.problem, observation, mask);
        case Answered::NoAnswer:
            shared_.status.unanswered_decisions.fetch_add(1, std::memory_order_relaxed);
            return act_by_fallback(shared_.governor.without_answer(*plan_), observation, mask);
    }
    take(decision.snapshot, decision.rows[row]);
    Action action = present_action();
    action.version_ = decision.snapshot->version;
    action.log_prob_ = log_prob_;
    return action;
}

/// Record what a version of the server decided about the present observation.
void Lane::take(const SharedSnapshot& snapshot, const wire::DecidedRow& decided) {
    ActingPlan plan = *plan_;
    plan.snapshot = snapshot;
    record_.decided_with(plan, carry_);
    SegmentBuffer& buffer = record_.buffer();
    buffer.record(decided);
    log_prob_.reset();
    const auto& extras = buffer.form()->extras;
    for (std::size_t place = 0; place < extras.size(); ++place) {
        if (extras[place].name == "log_prob" && decided.extras[place].size() == sizeof(float)) {
            float value = 0.0F;
            std::memcpy(&value, decided.extras[place].data(), sizeof value);
            log_prob_ = value;
        }
    }
    record_.took();
    const Decision decision = decision_of(decided);
    remember(decision);
    snapshot->interface->actions.finish(decision, action_);
    has_acted_ = true;
}

Decision Lane::decision_of_policy(ThreadPolicy& policy) {
    const SegmentBuffer& buffer = record_.buffer();
    noise_->at(steps_.load(std::memory_order_relaxed), policy.noise.data());
    for (std::size_t place = 0; place < policy.rows.size(); ++place) {
        policy.rows[place] = buffer.row(place, buffer.count);
    }
    return policy.policy.decide(policy.rows.data(), policy.noise.data(), carry_.empty() ? nullptr : carry_.data());
}

/// Advance the noise and the memory of the policy.
void Lane::remember(const Decision& decision) {
    steps_.store(steps_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    std::copy_n(decision.carry, carry_.size(), carry_.begin());
}

/// Let the fallback decide because the policy may not; recorded if the learner has use for it.
Action Lane::act_by_fallback(const ActingPlan& plan, const Observation& observation, ArrayView mask) {
    if (!shared_.fallback) {
        return failed(Problem::PolicyOff, "The policy does not decide, because " + explain_off(plan.off) +
                                              ", and there is no fallback. Pass a fallback to connect.");
    }
    const PolicyInterface* interface = plan.snapshot ? plan.snapshot->interface.get() : nullptr;
    if (std::string problem = shared_.fallback->decide(observation, mask, interface, action_); !problem.empty()) {
        return failed(Problem::FallbackFailed, std::move(problem));
    }
    AgentStatus& status = shared_.status;
    status.fallback_decisions.fetch_add(1, std::memory_order_relaxed);
    has_acted_ = true;
    std::string problem = "not recorded";
    if (interface != nullptr && (plan.records || plan.observes)) {
        problem = record_.observe(plan, observation, mask, carry_);
        if (!problem.empty()) {
            status.bad_input(problem);
        }
    }
    if (problem.empty()) {
        if (plan.observes) {
            compare(interface->actions);
        }
        record_.buffer().record_given(interface->actions.row(action_));
        record_.took();
    } else {
        record_.leave_out();
    }
    Action action = present_action();
    action.is_fallback_ = true;
    return action;
}

/// Let the policy decide beside the fallback, and count how often they agree.
void Lane::compare(const ActionAdapter& actions) {
    AgentStatus& status = shared_.status;
    ServerDecision answer;
    Decision decision;
    if (record_.buffer().snapshot->interface->is_local()) {
        decision = decision_of_policy(thread_policy(*record_.buffer().snapshot));
    } else {
        answer = shared_.server_policy.decide({asked()}, shared_.server_policy.timeout());
        if (answer.answered == Answered::NoAnswer) {
            status.unanswered_decisions.fetch_add(1, std::memory_order_relaxed);
        }
        if (answer.answered != Answered::Decided) {
            return;
        }
        decision = decision_of(answer.rows.front());
    }
    if (decision.outcome != Outcome::Decided) {
        return;
    }
    remember(decision);
    status.observed_decisions.fetch_add(1, std::memory_order_relaxed);
    if (actions.agree(decision, action_)) {
        status.agreed_decisions.fetch_add(1, std::memory_order_relaxed);
    }
}

/// Decide although the observation or the decision of the policy cannot be used.
Action Lane::act_despite(Problem problem, std::string message, const Observation& observation, ArrayView mask) {
    AgentStatus& status = shared_.status;
    status.bad_input(message);
    const bool holds = shared_.on_bad_input == BadInputChoice::Hold && has_acted_;
    if (shared_.on_bad_input == BadInputChoice::Raise || (!holds && !shared_.fallback)) {
        return failed(problem, std::move(message));
    }
    if (!holds) {
        const PolicyInterface& interface = *plan_->snapshot->interface;
        if (std::string failure = shared_.fallback->decide(observation, mask, &interface, action_); !failure.empty()) {
            return failed(Problem::FallbackFailed, std::move(failure));
        }
        status.fallback_decisions.fetch_add(1, std::memory_order_relaxed);
        has_acted_ = true;
    }
    record_.leave_out();
    Action action = present_action();
    action.is_fallback_ = !holds;
    return action;
}

void Lane::post(SegmentBufferList& sealed, std::uint64_t episode) {
    while (!sealed.empty()) {
        std::unique_ptr<SegmentBuffer> buffer = sealed.pop_front();
        buffer->lane = index_;
        buffer->episode = episode;
        shared_.queue.post(std::move(buffer));
    }
}

/// The latest decision as an action for the system.
Action Lane::present_action() const {
    Action action;
    action.choices_ = action_.choices.data();
    action.numbers_ = action_.numbers.data();
    action.choice_count_ = action_.choices.size();
    action.number_count_ = action_.numbers.size();
    action.structure_ = shared_.structure.get();
    action.decision_ = record_.decisions() - 1;
    return action;
}

Action Lane::failed(Problem problem, std::string message) {
    Action action;
    action.problem_ = problem;
    action.message_ = std::move(message);
    return action;
}

}  // namespace rl4sys::client
