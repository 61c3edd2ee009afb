#include "client/policy_interface.hpp"

#include <utility>

#include "wire/errors.hpp"

namespace rl4sys::client {
namespace {

using wire::ContractViolation;

constexpr std::size_t most_taken_weights = std::size_t{1} << 27;

/// Refuse here, once, and not in a decision, what cannot be run.
void require_runs(const PolicySpec& explore, const std::optional<PolicySpec>& exploit, std::size_t weight_count) {
    if (weight_count > most_taken_weights) {
        throw LayoutMismatch("it has " + std::to_string(weight_count) + " weights; at most " +
                             std::to_string(most_taken_weights) + " can be sent.");
    }
    const auto weights = std::make_shared<const Weights>(weight_count);
    const Policy trial(explore, weights);
    if (exploit) {
        const Policy other(*exploit, weights);
        if (!(exploit->program.inputs == explore.program.inputs) || !is_same(exploit->action, explore.action)) {
            throw std::invalid_argument("its exploit policy has other observations or actions.");
        }
    }
}

/// The parts of the action, unless the policy has another action; then it is refused later.
std::shared_ptr<const ActionStructure> fitting(const std::shared_ptr<const ActionStructure>& structure,
                                               const ActionSpec& action) {
    return structure && is_same(structure->spec(), action) ? structure : nullptr;
}

}  // namespace

PolicyInterface::PolicyInterface(PolicySpec explore_policy, std::optional<PolicySpec> exploit_policy,
                                 const InterfaceSettings& settings)
    : action(explore_policy.action),
      actions(explore_policy.action, fitting(settings.structure, explore_policy.action)) {
    const ActingMode mode = settings.mode;
    if (mode != ActingMode::Explore && !exploit_policy) {
        throw ContractViolation(std::string("The server sent no exploit policy, which `mode: ") + name_of(mode) +
                                "` acts with. Upgrade the server, or choose `mode: explore`.");
    }
    try {
        weight_count = Layout(explore_policy.program.tensors).size();
        require_runs(explore_policy, exploit_policy, weight_count);
        text = policy_to_json(explore_policy) + (exploit_policy ? policy_to_json(*exploit_policy) : "");
    } catch (const std::invalid_argument& error) {
        throw ContractViolation(std::string("The server's policy cannot be run here: ") + error.what());
    }
    explore = std::make_shared<const PolicySpec>(std::move(explore_policy));
    if (exploit_policy) {
        exploit = std::make_shared<const PolicySpec>(std::move(*exploit_policy));
    }
    acting = mode == ActingMode::Explore ? explore : exploit;
    form = std::make_shared<const wire::SegmentFormat>(wire::format_of(*acting));
    noise_size = rl4sys::noise_size(*acting);
    read_form(settings);
}

PolicyInterface::PolicyInterface(const wire::SegmentFormat& schema, const ActionSpec& kind,
                                 const InterfaceSettings& settings)
    : action(kind),
      form(std::make_shared<const wire::SegmentFormat>(schema)),
      actions(kind, fitting(settings.structure, kind)) {
    read_form(settings);
}

void PolicyInterface::read_form(const InterfaceSettings& settings) {
    for (const ArraySpec& memory : form->carry) {
        carry_size += memory.values();
    }
    try {
        reader = ObservationReader(form->observation, settings.defaults);
    } catch (const SettingsError& error) {
        throw ContractViolation(error.what());
    }
}

bool is_same(const ActionSpec& one, const ActionSpec& other) {
    if (one.index() != other.index()) {
        return false;
    }
    if (const auto* discrete = std::get_if<DiscreteAction>(&one)) {
        return discrete->n == std::get<DiscreteAction>(other).n &&
               discrete->start == std::get<DiscreteAction>(other).start;
    }
    if (const auto* several = std::get_if<MultiDiscreteAction>(&one)) {
        return several->sizes == std::get<MultiDiscreteAction>(other).sizes;
    }
    if (const auto* mixed = std::get_if<MixedAction>(&one)) {
        const auto& others = std::get<MixedAction>(other);
        return mixed->sizes == others.sizes && mixed->low == others.low && mixed->high == others.high;
    }
    return std::get<BoxAction>(one).low == std::get<BoxAction>(other).low &&
           std::get<BoxAction>(one).high == std::get<BoxAction>(other).high;
}

}  // namespace rl4sys::client
