// Uses the original headers, names and calls. Without a server it only finds out that its config is missing.
#include <iostream>

#include "config_loader.h"
#include "rl4sys_agent.h"

using namespace rl4sys::cppclient;

namespace {

/// One episode in the manner of the original examples.
float run(RL4SysAgent& agent, int steps) {
    std::vector<float> seen(8, 0.0f);
    const std::vector<float> allowed(4, 1.0f);
    std::shared_ptr<RL4SysTrajectory> trajectory = nullptr;
    float total = 0.0f;
    for (int step = 0; step < steps; ++step) {
        auto answer =
            step == 0 ? agent.requestForAction(trajectory, seen) : agent.requestForAction(trajectory, seen, allowed);
        if (!answer) break;
        trajectory = answer->first;
        RL4SysAction action = answer->second;
        auto values = action.getAction();
        const int choice = values.empty() ? 0 : static_cast<int>(values[0]) % 4;
        agent.updateActionReward(action, choice == 2 ? 1.0f : 0.0f);
        agent.addToTrajectory(trajectory, action);
        total += static_cast<float>(action.getReward());
        if (step + 1 == steps) agent.markEndOfTrajectory(trajectory, action);
    }
    if (!trajectory) return total;
    std::cout << trajectory->size() << " actions of version " << trajectory->getVersion() << ", "
              << (trajectory->isValid() && trajectory->isCompleted() ? "complete" : "incomplete") << std::endl;
    return total;
}

}  // namespace

int main(int argc, char* argv[]) {
    const std::string config = argc > 1 ? argv[1] : "missing_conf.json";
    try {
        RL4SysAgent agent(config, false);
        std::cout << "version " << agent.getCurrentModelVersion() << ", return " << run(agent, 100) << std::endl;
        agent.flushTrajectories();
        agent.close();
    } catch (const ConfigurationError& error) {
        std::cout << error.what() << std::endl;
        return argc > 1 ? 1 : 0;
    } catch (const std::exception& error) {
        std::cerr << error.what() << std::endl;
        return 1;
    }
    return argc > 1 ? 0 : 1;
}
