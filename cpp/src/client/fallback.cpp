#include "client/fallback.hpp"

#include <exception>
#include <utility>

namespace rl4sys::client {
namespace {

std::string threw(const std::string& what) {
    return "The fallback threw " + what +
           ". It must decide for every observation, also for one that the policy cannot use.";
}

}  // namespace

FallbackDecider::FallbackDecider(Fallback fallback, const std::optional<ActionSpec>& action,
                                 std::shared_ptr<const ActionStructure> structure,
                                 const std::vector<ArraySpec>& observation)
    : fallback_(std::move(fallback)), reader_(observation) {
    if (action) {
        actions_.emplace(*action, std::move(structure));
    }
}

std::string FallbackDecider::decide(const Observation& observation, ArrayView mask, const PolicyInterface* interface,
                                    ActionValues& action) const {
    std::optional<FallbackAction> given;
    // Whatever the system's own code throws must not leave `act`.
    try {
        given = fallback_(observation, mask);
    } catch (const std::exception& error) {
        return threw(std::string("an exception: ") + error.what());
    } catch (...) {
        return threw("something that is not a std::exception");
    }
    const ActionAdapter* adapter = interface != nullptr ? &interface->actions : actions_ ? &*actions_ : nullptr;
    if (adapter == nullptr) {
        // Nothing is known about actions yet.
        action = {std::move(given->choices), std::move(given->numbers)};
        return "";
    }
    ActionValues checked;
    std::string problem = adapter->read(*given, checked);
    if (problem.empty()) {
        const ObservationReader& reader = interface != nullptr ? interface->reader : reader_;
        problem = reader.absent(observation, adapter->choices(checked));
    }
    if (!problem.empty()) {
        return "The fallback returned something that is not an action of this system. " + problem;
    }
    action = std::move(checked);
    return "";
}

}  // namespace rl4sys::client
