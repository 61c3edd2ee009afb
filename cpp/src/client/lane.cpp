#include "client/lane.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

#include "client/forks.hpp"

namespace rl4sys::client {
namespace {

constexpr std::size_t most_reserved = 64;

}  // namespace

Lane::Lane(const SharedState& shared, StreamKey stream, std::uint64_t first_episode)
    : shared_(shared), stream_(std::move(stream)), episode_(first_episode - 1) {
    held_.reserve(std::min(shared.reward_window + 2, most_reserved));
}

std::uint64_t Lane::begin() {
    const std::lock_guard lock(mutex_);
    ended_ = false;
    decided_ = unrecorded_ = 0;
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
            action = decide(observation, mask, sealed);
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
    if (index < unrecorded_) {
        return;
    }
    const auto add = [&](const std::unique_ptr<SegmentBuffer>& buffer) {
        const auto step = static_cast<std::uint64_t>(index);
        if (!buffer || step < buffer->start || step >= buffer->end()) {
            return false;
        }
        buffer->add_reward(step - buffer->start, static_cast<float>(value));
        return true;
    };
    if (!add(buffer_) && std::none_of(held_.rbegin(), held_.rend(), add)) {
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
        finish(final_observation, ending, mask, sealed);
        ended_ = true;
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

Action Lane::decide(const Observation& observation, ArrayView mask, SegmentBufferList& sealed) {
    if (const std::uint64_t generation = shared_.newest.generation(); generation != generation_) {
        adopt(shared_.newest.get());
        generation_ = generation;
    }
    if (!snapshot_) {
        return fall_back(observation);
    }
    if (std::string problem = observe(observation, mask, sealed); !problem.empty()) {
        return failed(Problem::BadObservation, std::move(problem));
    }
    const std::uint64_t step = steps_.load(std::memory_order_relaxed);
    noise_->at(step, noise_numbers_.data());
    for (std::size_t place = 0; place < rows_.size(); ++place) {
        rows_[place] = buffer_->row(place, buffer_->count);
    }
    const Decision decision =
        policy_->decide(rows_.data(), noise_numbers_.data(), carry_.empty() ? nullptr : carry_.data());
    if (decision.outcome != Outcome::Decided) {
        const bool is_mask = decision.outcome == Outcome::NothingAllowed;
        return failed(is_mask ? Problem::NothingAllowed : Problem::BadObservation, describe(decision.outcome));
    }
    buffer_->record(decision);
    steps_.store(step + 1, std::memory_order_relaxed);
    ++decided_;
    if (!carry_.empty()) {
        std::copy_n(decision.carry, carry_.size(), carry_.begin());
    }
    return acted(decision);
}

Action Lane::fall_back(const Observation& observation) {
    if (!shared_.fallback) {
        return failed(Problem::Failed, "There is no policy yet. Use rl4sys::connect, which waits for one.");
    }
    FallbackAction decided = shared_.fallback(observation);
    ++decided_;
    ++unrecorded_;
    shared_.status.fallback_decisions.fetch_add(1, std::memory_order_relaxed);
    choices_ = std::move(decided.choices);
    numbers_ = std::move(decided.numbers);
    Action action;
    action.is_fallback_ = true;
    action.choices_ = choices_.empty() ? nullptr : choices_.data();
    action.numbers_ = numbers_.empty() ? nullptr : numbers_.data();
    action.size_ = std::max(choices_.size(), numbers_.size());
    action.decision_ = decided_ - 1;
    return action;
}

void Lane::adopt(const SharedSnapshot& snapshot) {
    if (!policy_ || policy_spec_ != snapshot->spec) {
        policy_.emplace(*snapshot->spec, snapshot->weights);
        policy_spec_ = snapshot->spec;
        // Random numbers are keyed by step, so none repeats.
        noise_.emplace(shared_.seed, stream_, policy_->noise_size());
        noise_numbers_.assign(policy_->noise_size(), 0.0F);
    } else {
        policy_->load(snapshot->weights);
    }
    snapshot_ = snapshot;
}

/// Copies the observation into the present row of the buffer and seals the segments that can be sent now.
std::string Lane::observe(const Observation& observation, ArrayView mask, SegmentBufferList& sealed) {
    if (buffer_ && form_ != snapshot_->form) {
        // A policy with another schema: the next observation does not fit the old buffer.
        without_last("schema_changed");
        seal_all(Ending::Truncated, sealed);
    }
    if (!buffer_) {
        begin_buffer();
    }
    if (std::string problem = reader_.write(*buffer_, buffer_->count, observation, mask); !problem.empty()) {
        return problem;
    }
    if (buffer_->count > 0 && (buffer_->count == buffer_->length() || buffer_->snapshot != snapshot_)) {
        std::unique_ptr<SegmentBuffer> following = shared_.queue.blank(form_, buffer_->length());
        following->begin(snapshot_, buffer_->end(), carry_);
        following->continue_from(*buffer_);
        held_.push_back(std::move(buffer_));
        buffer_ = std::move(following);
    } else if (buffer_->count == 0) {
        buffer_->snapshot = snapshot_;
    }
    const std::int64_t settled = decided_ - static_cast<std::int64_t>(shared_.reward_window);
    while (!held_.empty() && static_cast<std::int64_t>(held_.front()->end()) <= settled) {
        seal(std::move(held_.front()), Ending::Continues, sealed);
        held_.erase(held_.begin());
    }
    return "";
}

/// The first buffer of the episode, or the first after a change of schema.
void Lane::begin_buffer() {
    if (form_ != snapshot_->form) {
        form_ = snapshot_->form;
        reader_ = ObservationReader(form_->observation);
        rows_.assign(form_->observation.size(), nullptr);
        carry_.assign(policy_->carry_size(), 0.0F);
        choices_.assign(policy_->action_size(), 0);
        numbers_.assign(policy_->action_size(), 0.0F);
        const auto* discrete = std::get_if<DiscreteAction>(&snapshot_->spec->action);
        first_choice_ = discrete == nullptr ? 0 : discrete->start;
        if (const auto* box = std::get_if<BoxAction>(&snapshot_->spec->action)) {
            least_.assign(box->low.begin(), box->low.end());
            most_.assign(box->high.begin(), box->high.end());
        }
        if (const auto* mixed = std::get_if<MixedAction>(&snapshot_->spec->action)) {
            // Choices are always within their range.
            least_.assign(mixed->sizes.size(), 0.0F);
            most_.assign(mixed->sizes.begin(), mixed->sizes.end());
            least_.insert(least_.end(), mixed->low.begin(), mixed->low.end());
            most_.insert(most_.end(), mixed->high.begin(), mixed->high.end());
        }
    }
    buffer_ = shared_.queue.blank(form_, std::min(shared_.longest, snapshot_->max_steps));
    buffer_->begin(snapshot_, static_cast<std::uint64_t>(decided_), carry_);
}

void Lane::finish(const Observation& final_observation, Ending ending, ArrayView mask, SegmentBufferList& sealed) {
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
    seal_all(ending, sealed);
}

void Lane::seal_all(Ending ending, SegmentBufferList& sealed) {
    if (buffer_->count > 0) {
        held_.push_back(std::move(buffer_));
    } else {
        shared_.queue.give_back(std::move(buffer_));
    }
    for (std::unique_ptr<SegmentBuffer>& buffer : held_) {
        seal(std::move(buffer), &buffer == &held_.back() ? ending : Ending::Continues, sealed);
    }
    held_.clear();
}

void Lane::seal(std::unique_ptr<SegmentBuffer> buffer, Ending ending, SegmentBufferList& sealed) {
    buffer->lane = stream_.lane;
    buffer->episode = episode_;
    buffer->ending = ending;
    sealed.push_back(std::move(buffer));
}

/// Drops the last decision, whose outcome was never observed.
void Lane::without_last(const std::string& reason) {
    if (buffer_->count > 0) {
        --buffer_->count;
        shared_.status.drop(reason);
    }
}

void Lane::post(SegmentBufferList& sealed) {
    while (!sealed.empty()) {
        if (shared_.rules.keeps_other_lineage.load(std::memory_order_relaxed)) {
            shared_.queue.give_back(sealed.pop_front());
            shared_.status.drop("other_lineage");
        } else {
            shared_.queue.post(sealed.pop_front());
        }
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
