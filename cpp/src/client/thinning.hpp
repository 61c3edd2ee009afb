/// Thins episodes at the source, when the server cannot use all of them.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string_view>

#include "records/crc32.hpp"

namespace rl4sys::client {

/// Decisions after which a long episode is asked about again: it is thinned by spans.
inline constexpr std::int64_t thinning_span = 1024;

/// Keeps a share of episodes, evenly spread: the error of each choice is carried over to the next one.
class Thinning {
public:
    /// Begins with an episode that is kept.
    Thinning() = default;
    /// Begins where one of many clients is in its turn: `phase` is from 0 to 1.
    explicit Thinning(std::optional<double> phase) : credit_(phase) {}

    /// Whether to record the next episode or span.
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

/// Where a client begins that shares its learner: clients that began alike would all record at the same time.
inline double fleet_phase(std::string_view client) {
    return records::crc32(client) / 4294967296.0;
}

}  // namespace rl4sys::client
