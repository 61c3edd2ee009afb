#include "client/episode_record.hpp"

#include <algorithm>

namespace rl4sys::client {
namespace {

bool add_reward(SegmentBuffer* buffer, std::int64_t decision, float value) {
    const auto step = static_cast<std::uint64_t>(decision);
    if (buffer == nullptr || step < buffer->start || step >= buffer->end()) {
        return false;
    }
    buffer->add_reward(step - buffer->start, value);
    return true;
}

}  // namespace

void EpisodeRecord::begin() {
    decisions_ = span_end_ = 0;
    is_thinned_ = false;
    gap_count_ = 0;
}

std::string EpisodeRecord::observe(const ActingPlan& plan, const Observation& observation, ArrayView mask,
                                   const std::vector<float>& carry) {
    std::string problem = observe_undecided(plan, observation, mask, carry);
    if (problem.empty()) {
        decided_with(plan, carry);
    }
    return problem;
}

std::string EpisodeRecord::observe_undecided(const ActingPlan& plan, const Observation& observation, ArrayView mask,
                                             const std::vector<float>& carry) {
    const Snapshot& snapshot = *plan.snapshot;
    if (buffer_ && buffer_->form() != snapshot.form()) {
        // A policy with another schema: the next observation does not fit the old buffer.
        without_last("schema_changed");
        close(Ending::Truncated);
    }
    if (!buffer_) {
        buffer_ = taken(plan, carry);
    } else if (buffer_->needs_to_grow()) {
        buffer_->grow();
    }
    const auto written = snapshot.interface->reader.write(*buffer_, buffer_->count, observation, mask);
    if (!written.problem.empty()) {
        return written.problem;
    }
    if (written.is_defaulted) {
        shared_.status.defaulted_inputs.fetch_add(1, std::memory_order_relaxed);
    }
    return "";
}

void EpisodeRecord::decided_with(const ActingPlan& plan, const std::vector<float>& carry) {
    if (buffer_->count == 0) {
        buffer_->adopt(plan);
        buffer_->recorded = records(plan);
    } else if (buffer_->count == buffer_->length() || is_another(plan)) {
        std::unique_ptr<SegmentBuffer> following = taken(plan, carry);
        // An episode that lasts needs full segments; growing at once saves copies later.
        following->grow_fully();
        following->continue_from(*buffer_);
        close(following->recorded ? Ending::Continues : Ending::Truncated);
        buffer_ = std::move(following);
    }
}

void EpisodeRecord::leave_out() {
    if (buffer_) {
        // What followed the last step cannot be observed; the observation before it is the best guess.
        buffer_->repeat_last();
        close(Ending::Truncated);
    }
    skip(decisions_, decisions_ + 1);
    ++decisions_;
}

void EpisodeRecord::withdraw(std::int64_t decision) {
    const bool is_latest = decision == decisions_ - 1 && buffer_ && buffer_->count > 0;
    if (!is_latest || !buffer_->recorded) {
        return;
    }
    // Its observation shows what the step before led to.
    --buffer_->count;
    close(Ending::Truncated);
    if (!held_.empty() && held_.back()->ending == Ending::Continues) {
        held_.back()->ending = Ending::Truncated;
    }
    skip(decision, decision + 1);
}

void EpisodeRecord::reward(std::int64_t decision, float value) {
    if (add_reward(buffer_.get(), decision, value)) {
        return;
    }
    for (SegmentBuffer* held = held_.front(); held != nullptr; held = held->next.get()) {
        if (add_reward(held, decision, value)) {
            return;
        }
    }
    const bool is_unrecorded = std::any_of(gaps_.begin(), gaps_.begin() + gap_count_, [decision](const auto& gap) {
        return gap.first <= decision && decision < gap.second;
    });
    if (!is_unrecorded) {
        shared_.status.late_rewards.fetch_add(1, std::memory_order_relaxed);
    }
}

std::string EpisodeRecord::finish(const Observation& final_observation, Ending ending, ArrayView mask, bool despite) {
    if (!buffer_) {
        return "";
    }
    std::string problem;
    bool is_known = final_observation.given();
    if (is_known) {
        problem = buffer_->snapshot->interface->reader.write(*buffer_, buffer_->count, final_observation, mask).problem;
        is_known = problem.empty();
        if (!is_known && !despite) {
            return problem;
        }
    }
    if (!is_known && ending == Ending::Terminated) {
        buffer_->repeat_last();
    } else if (!is_known) {
        without_last("no_final_observation");
    }
    close(ending);
    if (!held_.empty() && held_.back()->ending == Ending::Continues) {
        held_.back()->ending = ending;
    }
    return problem;
}

void EpisodeRecord::seal_due(std::int64_t decisions, SegmentBufferList& sealed) {
    while (!held_.empty() && is_due(*held_.front(), decisions)) {
        sealed.push_back(held_.pop_front());
    }
}

void EpisodeRecord::seal_all(SegmentBufferList& sealed) {
    while (!held_.empty()) {
        sealed.push_back(held_.pop_front());
    }
}

/// Whether the next segment is recorded; asked again after each span, so that endless episodes are thinned.
bool EpisodeRecord::records(const ActingPlan& plan) {
    if (!plan.records) {
        return false;
    }
    if (decisions_ >= span_end_) {
        span_end_ = decisions_ + thinning_span;
        is_thinned_ = !shared_.thinning.keeps(shared_.governor.record_share());
        if (is_thinned_) {
            shared_.status.thinned_episodes.fetch_add(1, std::memory_order_relaxed);
        }
    }
    return !is_thinned_;
}

/// Whether the next decision does not belong to the segment of the present buffer.
bool EpisodeRecord::is_another(const ActingPlan& plan) const {
    return buffer_->snapshot != plan.snapshot || buffer_->decided_by != plan.decided_by ||
           buffer_->recorded != (plan.records && !is_thinned_);
}

bool EpisodeRecord::is_due(const SegmentBuffer& buffer, std::int64_t decisions) const {
    const RewardWindow& window = shared_.reward_window;
    return static_cast<std::int64_t>(buffer.end() + window.decisions) <= decisions ||
           (window.seconds && buffer.closed_at + *window.seconds <= shared_.clock());
}

std::unique_ptr<SegmentBuffer> EpisodeRecord::taken(const ActingPlan& plan, const std::vector<float>& carry) {
    const Snapshot& snapshot = *plan.snapshot;
    auto buffer = shared_.queue.blank(snapshot.form(), std::min(shared_.longest, snapshot.max_steps));
    buffer->begin(plan, static_cast<std::uint64_t>(decisions_), carry);
    buffer->recorded = records(plan);
    return buffer;
}

/// Hold a complete segment back for rewards, or forget it if it is not recorded.
void EpisodeRecord::close(Ending ending) {
    std::unique_ptr<SegmentBuffer> buffer = std::move(buffer_);
    if (buffer->recorded && buffer->count > 0) {
        buffer->ending = ending;
        if (shared_.reward_window.seconds) {
            buffer->closed_at = shared_.clock();
        }
        held_.push_back(std::move(buffer));
        return;
    }
    if (buffer->count > 0) {
        skip(static_cast<std::int64_t>(buffer->start), static_cast<std::int64_t>(buffer->end()));
    }
    shared_.queue.give_back(std::move(buffer));
}

/// Remember decisions that are not recorded.
void EpisodeRecord::skip(std::int64_t first, std::int64_t after) {
    shared_.status.unrecorded_decisions.fetch_add(static_cast<std::uint64_t>(after - first), std::memory_order_relaxed);
    if (gap_count_ > 0 && gaps_[gap_count_ - 1].second == first) {
        gaps_[gap_count_ - 1].second = after;
        return;
    }
    if (gap_count_ == most_gaps) {
        std::copy(gaps_.begin() + 1, gaps_.end(), gaps_.begin());
        --gap_count_;
    }
    gaps_[gap_count_++] = {first, after};
}

/// Drops the last decision, whose outcome was never observed.
void EpisodeRecord::without_last(const char* reason) {
    if (buffer_->count > 0 && buffer_->recorded) {
        --buffer_->count;
        shared_.status.drop(reason);
    }
}

}  // namespace rl4sys::client
