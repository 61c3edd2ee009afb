#include <rl4sys/policy.hpp>

int main() {
    rl4sys::PolicySpec spec;
    spec.action = rl4sys::DiscreteAction{2, 0};
    spec.program.inputs = {{"scores", rl4sys::ElementType::Float32, {2}}};
    spec.head.inputs = {"scores"};
    rl4sys::Policy policy(spec, std::make_shared<const rl4sys::Weights>());
    const float scores[] = {0.0F, 1.0F};
    const void* observation[] = {scores};
    return policy.decide(observation, nullptr).choices[0] == 1 ? 0 : 1;
}
