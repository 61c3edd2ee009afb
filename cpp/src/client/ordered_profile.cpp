#include "client/ordered_profile.hpp"

#include <string>
#include <utility>

#include "client/bare_products.hpp"
#include "client/clock.hpp"

namespace rl4sys::client {
namespace {

// Blocks in one report.
constexpr std::size_t most_blocks = 256;

}  // namespace

std::optional<wire::ProfileProgress> OrderedProfile::progress() const {
    const std::lock_guard lock(mutex_);
    std::optional<wire::ProfileProgress> report = progress_;
    if (report && report->blocks.size() > most_blocks) {
        // The others follow, so this is not the end.
        report->blocks.resize(most_blocks);
        report->is_complete = false;
    }
    return report;
}

void OrderedProfile::answered(const std::optional<wire::ProfileProgress>& reported,
                              const std::optional<wire::ProfileOrder>& order) {
    bool is_over = false;
    bool is_new = false;
    {
        const std::lock_guard lock(mutex_);
        if (progress_ && reported) {
            const auto count = static_cast<std::ptrdiff_t>(reported->blocks.size());
            progress_->blocks.erase(progress_->blocks.begin(), progress_->blocks.begin() + count);
            progress_->first_block += static_cast<std::uint32_t>(count);
        }
        const std::uint64_t known = progress_ ? progress_->sequence : 0;
        is_over = is_running_ && (!order || order->sequence != known);
        is_new = !is_running_ && order && order->sequence > known;
    }
    if (is_over) {
        stop();
    } else if (is_new) {
        begin(*order);
    }
}

void OrderedProfile::stop() {
    {
        const std::lock_guard lock(mutex_);
        is_stopping_ = true;
    }
    changed_.notify_all();
}

void OrderedProfile::close(double seconds) {
    stop();
    std::unique_ptr<BackgroundThread> thread;
    {
        const std::lock_guard lock(mutex_);
        thread = std::move(thread_);
    }
    if (thread) {
        thread->join(seconds);
    }
}

void OrderedProfile::begin(const wire::ProfileOrder& order) {
    {
        const std::lock_guard lock(mutex_);
        progress_.emplace();
        progress_->sequence = order.sequence;
        is_running_ = true;
        is_stopping_ = false;
    }
    auto thread = start_([this, order] { run(order); });
    const std::lock_guard lock(mutex_);
    thread_ = std::move(thread);
}

void OrderedProfile::run(const wire::ProfileOrder& order) {
    const auto keep = [this](wire::ProfileBlock block) {
        const std::lock_guard lock(mutex_);
        progress_->blocks.push_back(std::move(block));
    };
    const auto wait = [this](double seconds) {
        std::unique_lock lock(mutex_);
        return changed_.wait_for(lock, length_of(seconds), [this] { return is_stopping_; });
    };
    std::string problem = Profiler(order, parts_, keep, wait).run();
    const auto floor = problem.empty() ? bare_products(parts_.governor.snapshot()) : std::nullopt;
    {
        const std::lock_guard lock(mutex_);
        progress_->is_complete = true;
        progress_->problem = std::move(problem);
        progress_->floor_nanoseconds = floor;
        is_running_ = false;
    }
    on_end_();
}

}  // namespace rl4sys::client
