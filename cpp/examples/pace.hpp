/// @file
/// Limits a loop to a number of steps per second, so that its learner can keep up.
#pragma once

#include <algorithm>
#include <chrono>
#include <thread>

namespace examples {

class Pace {
public:
    /// 0 for a loop that never waits.
    explicit Pace(double per_second) : step_(per_second > 0.0 ? 1.0 / per_second : 0.0) {}

    /// Wait after `steps` more steps, if they were too fast. Delays of up to 0.1 s are caught up.
    void wait(std::size_t steps) {
        using std::chrono::steady_clock;
        const auto taken = std::chrono::duration_cast<steady_clock::duration>(step_ * static_cast<double>(steps));
        next_ = std::max(next_ + taken, steady_clock::now() - std::chrono::milliseconds(100));
        if (step_.count() > 0.0) {
            std::this_thread::sleep_until(next_);
        }
    }

private:
    std::chrono::duration<double> step_;
    std::chrono::steady_clock::time_point next_ = std::chrono::steady_clock::now();
};

}  // namespace examples
