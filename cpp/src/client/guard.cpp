#include "client/guard.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "rl4sys/log.hpp"

namespace rl4sys::client {
namespace {

// Seconds between two looks.
constexpr double look_seconds = 0.1;

}  // namespace

Guard::Guard(Governor& governor, AgentStatus& status, Clock clock, std::optional<std::filesystem::path> kill_file,
             std::optional<double> lease)
    : governor_(governor),
      status_(status),
      clock_(std::move(clock)),
      kill_file_(std::move(kill_file)),
      lease_(lease),
      heard_(status.heard),
      heard_at_(clock_()) {
    look();
}

void Guard::run() {
    while (true) {
        {
            std::unique_lock lock(mutex_);
            if (stopped_.wait_for(lock, length_of(look_seconds), [this] { return stopping_; })) {
                return;
            }
        }
        look();
    }
}

void Guard::look() {
    if (kill_file_) {
        governor_.set_kill_file(exists(*kill_file_));
    }
    if (lease_) {
        const double now = clock_();
        if (const std::uint64_t heard = status_.heard; heard != heard_) {
            heard_ = heard;
            heard_at_ = now;
        }
        governor_.set_lease_over(now - heard_at_ > *lease_);
    }
}

void Guard::stop() {
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
    }
    stopped_.notify_all();
}

bool Guard::exists(const std::filesystem::path& path) {
    struct stat found {};
    if (::stat(path.c_str(), &found) == 0) {
        return true;
    }
    const int cause = errno;
    if (cause == ENOENT || cause == ENOTDIR) {
        return false;
    }
    // Whether the file exists is unknown, and a switch that cannot be read must not leave the policy on.
    if (!std::exchange(unreadable_reported_, true)) {
        log(LogLevel::Error, "The kill file " + path.string() + " cannot be looked at: " + std::strerror(cause) +
                                 ". The policy is off.");
    }
    return true;
}

}  // namespace rl4sys::client
