/// Thins episodes at the source, when the server cannot use all of them.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>

namespace rl4sys::client {

/// Decisions after which a long episode is asked about again: it is thinned by spans.
inline constexpr std::int64_t thinning_span = 1024;

/// Keeps a share of episodes, evenly spread: the error of each choice is carried over to the next one.
class Thinning {
public:
    /// Whether to record the next episode or span; the first one is always recorded.
    bool keeps(double share) {
        if (share >= 1.0) {
            return true;
        }
        const std::lock_guard lock(mutex_);
        const double credit = credit_ ? *credit_ + share : 1.0;
        const bool keep = credit >= 1.0;
        credit_ = keep ? credit - 1.0 : credit;
        return keep;
    }

private:
    std::mutex mutex_;
    std::optional<double> credit_;
};

}  // namespace rl4sys::client
