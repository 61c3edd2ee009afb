#include <cmath>
#include <limits>
#include <stdexcept>

#include "rl4sys/rl4sys_agent.hpp"

namespace rl4sys {

void RL4SysAction::updateReward(double reward) {
    if (!(std::abs(reward) <= static_cast<double>(std::numeric_limits<float>::max()))) {
        throw std::invalid_argument("Got the reward " + std::to_string(reward) +
                                    "; expected a finite number. Leave it out if it is not known.");
    }
    const double before = getReward();
    decision_->reward = reward;
    if (const std::shared_ptr<RL4SysTrajectory> trajectory = decision_->trajectory.lock()) {
        trajectory->episode_.reward(reward - before, decision_->id);
        trajectory->settle_if_complete();
    }
}

}  // namespace rl4sys
