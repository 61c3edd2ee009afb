#include "client/episode_record.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <sstream>
#include <string_view>

namespace rl4sys::client {
namespace {

// Settled decisions for which the present segment is cut: shorter ones would send most observations twice.
constexpr std::size_t fewest_settled = 16;

std::string number(double value) {
    std::ostringstream text;
    text << value;
    return text.str();
}

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
    now_.reset();
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
        buffer_ = taken(plan, carry, 1);
    } else if (buffer_->needs_to_grow()) {
        grow();
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
    } else if (buffer_->count == buffer_->length() || is_another(plan) || is_complete(*buffer_)) {
        // An episode that lasts needs full segments, unless its rewards cut them earlier; a buffer that is large enough
        // at once saves copies later.
        const bool is_cut_short = buffer_->count < buffer_->length() && !is_another(plan);
        const std::size_t steps = is_cut_short ? buffer_->count : longest(*plan.snapshot);
        std::unique_ptr<SegmentBuffer> following = taken(plan, carry, steps);
        following->continue_from(*buffer_);
        close(following->recorded ? Ending::Continues : Ending::Truncated);
        buffer_ = std::move(following);
    }
}

const std::byte* EpisodeRecord::observed(std::string_view name) const {
    const wire::SegmentFormat& form = *buffer_->form();
    const auto found = std::find_if(form.observation.begin(), form.observation.end(),
                                    [&](const ArraySpec& spec) { return spec.name == name; });
    if (found == form.observation.end()) {
        return nullptr;
    }
    return buffer_->row(static_cast<std::size_t>(found - form.observation.begin()), buffer_->count);
}

std::string EpisodeRecord::refused(const std::vector<std::int64_t>& choices) const {
    if (const std::byte* count = observed(candidate_count_name); count && !choices.empty()) {
        float there = 0.0F;
        std::memcpy(&there, count, sizeof there);
        if (choices[0] >= static_cast<std::int64_t>(there)) {
            return no_such_candidate(choices[0], static_cast<std::size_t>(there));
        }
    }
    const std::byte* allowed = observed(mask_name);
    for (std::size_t part = 0; allowed && part < choices.size(); ++part) {
        if (allowed[choices[part]] == std::byte{0}) {
            return "Got choice " + std::to_string(choices[part]) +
                   ", which the mask excludes. Pass the mask it was taken under.";
        }
        allowed += buffer_->form()->choices[part];
    }
    return {};
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

bool EpisodeRecord::reward(std::int64_t decision, float value) {
    if (add_reward(buffer_.get(), decision, value)) {
        return true;
    }
    for (SegmentBuffer* held = held_.front(); held != nullptr; held = held->next.get()) {
        if (add_reward(held, decision, value)) {
            return true;
        }
    }
    const bool is_unrecorded = std::any_of(gaps_.begin(), gaps_.begin() + gap_count_, [decision](const auto& gap) {
        return gap.first <= decision && decision < gap.second;
    });
    if (!is_unrecorded) {
        shared_.status.late_rewards.fetch_add(1, std::memory_order_relaxed);
    }
    return is_unrecorded;
}

void EpisodeRecord::settle(std::int64_t decision, SegmentBufferList& sealed) {
    const auto settle_in = [decision](SegmentBuffer* buffer) {
        const auto step = static_cast<std::uint64_t>(decision);
        if (buffer != nullptr && step >= buffer->start && step < buffer->end()) {
            buffer->settle(step - buffer->start);
        }
    };
    settle_in(buffer_.get());
    for (SegmentBuffer* held = held_.front(); held != nullptr; held = held->next.get()) {
        settle_in(held);
    }
    seal_due(decisions_ - 1, sealed);
}

std::string EpisodeRecord::follow(std::optional<double> now) {
    if (!now) {
        return now_ ? "Got no time; earlier decisions of this episode had one. Pass now with every decision." : "";
    }
    if (!std::isfinite(*now)) {
        return "Got now=" + number(*now) + "; expected seconds, a finite number.";
    }
    if (!now_) {
        return decisions_ == 0 ? ""
                               : "Got now=" + number(*now) +
                                     ", but earlier decisions of this episode had no time. Pass it with all.";
    }
    if (*now < *now_) {
        return "Got now=" + number(*now) + " after " + number(*now_) +
               "; time does not go backwards. Use a monotonic clock.";
    }
    if (buffer_ && buffer_->count > 0) {
        buffer_->note_elapsed(static_cast<float>(*now - *now_));
    }
    return "";
}

void EpisodeRecord::decided_at(double now) {
    now_ = now;
    if (!buffer_) {
        return;
    }
    if (!buffer_->is_timed()) {
        buffer_->begin_times();
    }
    if (buffer_->count > 0) {
        buffer_->note_elapsed(0.0F);
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

/// Whether to cut here because no rewards are awaited any more, so that endless episodes send all the time.
bool EpisodeRecord::is_complete(const SegmentBuffer& buffer) const {
    if (buffer.is_settled()) {
        return buffer.count >= fewest_settled;
    }
    const RewardWindow& window = shared_.reward_window;
    return window.cuts && window.seconds && buffer.began_at + *window.seconds <= shared_.clock();
}

bool EpisodeRecord::is_due(const SegmentBuffer& buffer, std::int64_t decisions) const {
    const RewardWindow& window = shared_.reward_window;
    return static_cast<std::int64_t>(buffer.end() + window.decisions) <= decisions || buffer.is_settled() ||
           (window.seconds && buffer.closed_at + *window.seconds <= shared_.clock());
}

std::size_t EpisodeRecord::longest(const Snapshot& snapshot) const {
    return std::min(shared_.longest, snapshot.max_steps);
}

std::unique_ptr<SegmentBuffer> EpisodeRecord::taken(const ActingPlan& plan, const std::vector<float>& carry,
                                                    std::size_t steps) {
    const Snapshot& snapshot = *plan.snapshot;
    auto buffer = shared_.queue.blank(snapshot.form(), longest(snapshot), steps);
    buffer->begin(plan, static_cast<std::uint64_t>(decisions_), carry);
    buffer->recorded = records(plan);
    if (shared_.reward_window.cuts) {
        buffer->began_at = shared_.clock();
    }
    return buffer;
}

void EpisodeRecord::grow() {
    auto larger = shared_.queue.blank(buffer_->form(), buffer_->length(), buffer_->rows() + 1);
    larger->take_over(*buffer_);
    shared_.queue.give_back(std::exchange(buffer_, std::move(larger)));
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
