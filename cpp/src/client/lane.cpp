#include "client/lane.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

#include "client/forks.hpp"

namespace rl4sys::client {
namespace {

constexpr std::size_t most_reserved = 64;
// Ranges of unrecorded decisions that an episode remembers, to tell their rewards from late ones.
constexpr std::size_t most_gaps = 16;

std::string explain(std::string_view off) {
    return off == "control"     ? "an operator ordered it off"
           : off == "kill_file" ? "the kill file exists"
           : off == "lease"     ? "the server was silent for longer than the lease"
                                : "none has arrived yet";
}

}  // namespace

Lane::Lane(const SharedState& shared, StreamKey stream, std::uint64_t first_episode)
    : shared_(shared), stream_(std::move(stream)), episode_(first_episode - 1) {
    held_.reserve(std::min(shared.reward_window + 2, most_reserved));
    gaps_.reserve(most_gaps);
}

std::uint64_t Lane::begin() {
    const std::lock_guard lock(mutex_);
    ended_ = false;
    decided_ = span_end_ = 0;
    is_thinned_ = false;
    gaps_.clear();
    std::fill(carry_.begin(), carry_.end(), 0.0F);
    return ++episode_;
}

Action Lane::act(std::uint64_t episode, const Observation& observation, ArrayView mask) noexcept {
    try {
        if (shared_.forks != forks()) {
            return failed(Problem::Forked, explain_fork());
        }
        SegmentBufferList sealed;
        Action action;
        {
            const std::lock_guard lock(mutex_);
            if (ended_ || episode != episode_) {
                return failed(Problem::EpisodeEnded, "This episode has ended; start another one with agent.episode().");
            }
            const bool is_timed = decided_ % timed_decisions == 0;
            const auto began = is_timed ? std::chrono::steady_clock::now() : std::chrono::steady_clock::time_point();
            const std::int64_t before = decided_;
            action = act_by_plan(observation, mask);
            seal_due(before, sealed);
            if (is_timed && action) {
                const auto took = std::chrono::steady_clock::now() - began;
                shared_.times.add(static_cast<std::uint64_t>(std::chrono::nanoseconds(took).count()));
            }
        }
        // Outside the lock: with `overflow: block` posting may wait, and rewards must not.
        post(sealed);
        return action;
    } catch (const std::exception& error) {
        return failed(Problem::Failed, error.what());
    } catch (...) {
        return failed(Problem::Failed, "The fallback threw something that is not a std::exception.");
    }
}

void Lane::reward(std::uint64_t episode, double value, std::optional<std::int64_t> decision) {
    if (!(std::abs(value) <= static_cast<double>(std::numeric_limits<float>::max()))) {
        throw std::invalid_argument("Got the reward " + std::to_string(value) +
                                    "; expected a finite number. Leave it out if it is not known.");
    }
    const std::lock_guard lock(mutex_);
    if (episode != episode_) {
        // The lane already has another episode; this one is sealed completely.
        shared_.status.late_rewards.fetch_add(1, std::memory_order_relaxed);
        return;
    }
    const std::int64_t index = decision.value_or(decided_ - 1);
    if (index < 0 || index >= decided_) {
        throw std::invalid_argument("There is no decision " + std::to_string(index) + "; this episode has taken " +
                                    std::to_string(decided_) + " of them.");
    }
    const auto add = [&](const std::unique_ptr<SegmentBuffer>& buffer) {
        const auto step = static_cast<std::uint64_t>(index);
        if (!buffer || step < buffer->start || step >= buffer->end()) {
            return false;
        }
        buffer->add_reward(step - buffer->start, static_cast<float>(value));
        return true;
    };
    const auto has = [&](const Gap& gap) { return gap.first <= index && index < gap.after; };
    if (!add(buffer_) && std::none_of(held_.rbegin(), held_.rend(), add) &&
        std::none_of(gaps_.begin(), gaps_.end(), has)) {
        shared_.status.late_rewards.fetch_add(1, std::memory_order_relaxed);
    }
}

bool Lane::end(std::uint64_t episode, const Observation& final_observation, Ending ending, ArrayView mask) {
    if (ending == Ending::Continues) {
        throw std::invalid_argument("An episode ends as Terminated or Truncated; one that continues needs no end.");
    }
    SegmentBufferList sealed;
    {
        const std::lock_guard lock(mutex_);
        if (ended_ || episode != episode_) {
            return false;
        }
        finish(final_observation, ending, mask);
        ended_ = true;
        for (std::unique_ptr<SegmentBuffer>& buffer : held_) {
            seal(std::move(buffer), sealed);
        }
        held_.clear();
    }
    post(sealed);
    return true;
}

std::int64_t Lane::decision(std::uint64_t episode) const {
    const std::lock_guard lock(mutex_);
    return episode == episode_ ? decided_ - 1 : -1;
}

bool Lane::ended(std::uint64_t episode) const {
    const std::lock_guard lock(mutex_);
    return ended_ || episode != episode_;
}

Action Lane::act_by_plan(const Observation& observation, ArrayView mask) {
    if (const std::uint64_t generation = shared_.governor.generation(); generation != generation_) {
        adopt(shared_.governor.plan());
        generation_ = generation;
    }
    if (plan_->decided_by == DecidedBy::Fallback || !snapshot_) {
        return act_by_fallback(observation, mask);
    }
    if (std::string problem = observe(observation, mask); !problem.empty()) {
        return failed(Problem::BadObservation, std::move(problem));
    }
    return decide();
}

/// The policy's decision for the present row of the buffer.
Decision Lane::decision_of_policy() {
    noise_->at(steps_.load(std::memory_order_relaxed), noise_numbers_.data());
    for (std::size_t place = 0; place < rows_.size(); ++place) {
        rows_[place] = buffer_->row(place, buffer_->count);
    }
    return policy_->decide(rows_.data(), noise_numbers_.data(), carry_.empty() ? nullptr : carry_.data());
}

/// Let the policy choose an action for the present row of the buffer, and record it there.
Action Lane::decide() {
    const Decision decision = decision_of_policy();
    if (decision.outcome != Outcome::Decided) {
        const bool is_mask = decision.outcome == Outcome::NothingAllowed;
        return failed(is_mask ? Problem::NothingAllowed : Problem::BadObservation, describe(decision.outcome));
    }
    buffer_->record(decision);
    steps_.fetch_add(1, std::memory_order_relaxed);
    ++decided_;
    if (!carry_.empty()) {
        std::copy_n(decision.carry, carry_.size(), carry_.begin());
    }
    return acted(decision);
}

/// Let the fallback decide because the policy may not.
Action Lane::act_by_fallback(const Observation& observation, ArrayView /*mask*/) {
    if (!shared_.fallback) {
        return failed(Problem::PolicyOff, "The policy does not decide, because " + explain(plan_->off) +
                                              ", and there is no fallback. Pass one to connect.");
    }
    fallback_action_ = shared_.fallback(observation);
    shared_.status.fallback_decisions.fetch_add(1, std::memory_order_relaxed);
    leave_out();
    const auto& [choices, numbers] = *fallback_action_;
    Action action;
    action.is_fallback_ = true;
    action.choices_ = choices.empty() ? nullptr : choices.data();
    action.numbers_ = numbers.empty() ? nullptr : numbers.data();
    action.size_ = std::max(choices.size(), numbers.size());
    action.decision_ = decided_ - 1;
    return action;
}

void Lane::adopt(SharedPlan plan) {
    plan_ = std::move(plan);
    const SharedSnapshot& snapshot = plan_->snapshot;
    if (!snapshot || snapshot == snapshot_) {
        return;
    }
    if (!policy_ || policy_spec_ != snapshot->interface->acting) {
        policy_.emplace(*snapshot->interface->acting, snapshot->weights);
        policy_spec_ = snapshot->interface->acting;
        // Random numbers are keyed by step, so none repeats.
        noise_.emplace(shared_.seed, stream_, policy_->noise_size());
        noise_numbers_.assign(policy_->noise_size(), 0.0F);
    } else {
        policy_->load(snapshot->weights);
    }
    snapshot_ = snapshot;
}

/// Copies the observation into the present row of the buffer; a segment that is complete moves to the held ones.
std::string Lane::observe(const Observation& observation, ArrayView mask) {
    if (buffer_ && form_ != snapshot_->form()) {
        // A policy with another schema: the next observation does not fit the old buffer.
        without_last("schema_changed");
        close(Ending::Truncated);
    }
    if (!buffer_) {
        begin_buffer();
    }
    if (std::string problem = reader_.write(*buffer_, buffer_->count, observation, mask); !problem.empty()) {
        return problem;
    }
    if (buffer_->count == 0) {
        buffer_->adopt(*plan_);
    } else if (buffer_->count == buffer_->length() || is_another(*buffer_)) {
        const bool recorded = records();
        std::unique_ptr<SegmentBuffer> following = blank(recorded);
        following->continue_from(*buffer_);
        close(recorded ? Ending::Continues : Ending::Truncated);
        buffer_ = std::move(following);
    }
    return "";
}

/// The first buffer of the episode, or the first after a change of schema.
void Lane::begin_buffer() {
    if (form_ != snapshot_->form()) {
        form_ = snapshot_->form();
        reader_ = ObservationReader(form_->observation);
        rows_.assign(form_->observation.size(), nullptr);
        carry_.assign(policy_->carry_size(), 0.0F);
        choices_.assign(policy_->action_size(), 0);
        numbers_.assign(policy_->action_size(), 0.0F);
        const auto* discrete = std::get_if<DiscreteAction>(&policy_spec_->action);
        first_choice_ = discrete == nullptr ? 0 : discrete->start;
        if (const auto* box = std::get_if<BoxAction>(&policy_spec_->action)) {
            least_.assign(box->low.begin(), box->low.end());
            most_.assign(box->high.begin(), box->high.end());
        }
        if (const auto* mixed = std::get_if<MixedAction>(&policy_spec_->action)) {
            // Choices are always within their range.
            least_.assign(mixed->sizes.size(), 0.0F);
            most_.assign(mixed->sizes.begin(), mixed->sizes.end());
            least_.insert(least_.end(), mixed->low.begin(), mixed->low.end());
            most_.insert(most_.end(), mixed->high.begin(), mixed->high.end());
        }
    }
    buffer_ = blank(records());
}

std::unique_ptr<SegmentBuffer> Lane::blank(bool recorded) {
    auto buffer = shared_.queue.blank(form_, std::min(shared_.longest, snapshot_->max_steps));
    buffer->begin(*plan_, static_cast<std::uint64_t>(decided_), carry_, recorded);
    return buffer;
}

/// Whether the next segment is recorded; asked again after each span, so that endless episodes are thinned.
bool Lane::records() {
    if (!plan_->records) {
        return false;
    }
    if (decided_ >= span_end_) {
        span_end_ = decided_ + thinning_span;
        is_thinned_ = !shared_.thinning.keeps(shared_.governor.record_share());
        if (is_thinned_) {
            shared_.status.thinned_episodes.fetch_add(1, std::memory_order_relaxed);
        }
    }
    return !is_thinned_;
}

/// Whether the next decision does not belong to the segment of this buffer.
bool Lane::is_another(const SegmentBuffer& buffer) const {
    return buffer.snapshot != plan_->snapshot || buffer.decided_by != plan_->decided_by ||
           buffer.recorded != (plan_->records && !is_thinned_);
}

/// Take a decision that is not recorded; what was recorded before it ends here.
void Lane::leave_out() {
    if (buffer_) {
        // What followed the last step cannot be observed; the observation before it is the best guess.
        buffer_->repeat_last();
        close(Ending::Truncated);
    }
    skip(decided_, decided_ + 1);
    ++decided_;
}

/// Hold a complete segment back for rewards, or forget it if it is not recorded.
void Lane::close(Ending ending) {
    if (buffer_->recorded && buffer_->count > 0) {
        buffer_->ending = ending;
        held_.push_back(std::move(buffer_));
        return;
    }
    if (buffer_->count > 0) {
        skip(static_cast<std::int64_t>(buffer_->start), static_cast<std::int64_t>(buffer_->end()));
    }
    shared_.queue.give_back(std::move(buffer_));
}

/// Remember decisions that are not recorded.
void Lane::skip(std::int64_t first, std::int64_t after) {
    shared_.status.unrecorded_decisions.fetch_add(static_cast<std::uint64_t>(after - first), std::memory_order_relaxed);
    if (!gaps_.empty() && gaps_.back().after == first) {
        gaps_.back().after = after;
        return;
    }
    if (gaps_.size() == most_gaps) {
        gaps_.erase(gaps_.begin());
    }
    gaps_.push_back({first, after});
}

void Lane::finish(const Observation& final_observation, Ending ending, ArrayView mask) {
    if (!buffer_) {
        return;
    }
    if (final_observation.given()) {
        if (const std::string problem = reader_.write(*buffer_, buffer_->count, final_observation, mask);
            !problem.empty()) {
            throw std::invalid_argument(problem);
        }
    } else if (ending == Ending::Terminated) {
        buffer_->repeat_last();
    } else {
        without_last("no_final_observation");
    }
    close(ending);
    if (!held_.empty() && held_.back()->ending == Ending::Continues) {
        held_.back()->ending = ending;
    }
}

/// Seal the segments whose decisions have all left the reward window after so many decisions.
void Lane::seal_due(std::int64_t decisions, SegmentBufferList& sealed) {
    const std::int64_t settled = decisions - static_cast<std::int64_t>(shared_.reward_window);
    while (!held_.empty() && static_cast<std::int64_t>(held_.front()->end()) <= settled) {
        seal(std::move(held_.front()), sealed);
        held_.erase(held_.begin());
    }
}

void Lane::seal(std::unique_ptr<SegmentBuffer> buffer, SegmentBufferList& sealed) {
    buffer->lane = stream_.lane;
    buffer->episode = episode_;
    sealed.push_back(std::move(buffer));
}

/// Drops the last decision, whose outcome was never observed.
void Lane::without_last(const std::string& reason) {
    if (buffer_->count > 0 && buffer_->recorded) {
        --buffer_->count;
        shared_.status.drop(reason);
    }
}

void Lane::post(SegmentBufferList& sealed) {
    while (!sealed.empty()) {
        shared_.queue.post(sealed.pop_front());
    }
}

/// The action for the system: shifted to its first choice, or clipped to its bounds. The decision itself is recorded.
Action Lane::acted(const Decision& decision) {
    Action action;
    action.size_ = policy_->action_size();
    action.decision_ = decided_ - 1;
    if (decision.choices != nullptr) {
        for (std::size_t part = 0; part < action.size_; ++part) {
            choices_[part] = decision.choices[part] + first_choice_;
        }
        action.choices_ = choices_.data();
    } else {
        for (std::size_t part = 0; part < action.size_; ++part) {
            numbers_[part] = std::min(std::max(decision.numbers[part], least_[part]), most_[part]);
        }
        action.numbers_ = numbers_.data();
    }
    return action;
}

Action Lane::failed(Problem problem, std::string message) {
    Action action;
    action.problem_ = problem;
    action.message_ = std::move(message);
    return action;
}

}  // namespace rl4sys::client
