#include <cstdio>
#include <rl4sys/portable_policy.hpp>

int main(int count, char** words) {
    if (count != 2) {
        std::fprintf(stderr, "usage: %s POLICY.rl4sys\n", words[0]);
        return 64;
    }
    try {
        const rl4sys::PortablePolicy file = rl4sys::PortablePolicy::read(words[1]);
        rl4sys::Policy policy(file.exploit, file.weights);
        const float state[] = {0.0F, 1.0F};
        const void* observation[] = {state};
        const rl4sys::Decision decision = policy.decide(observation, nullptr);
        if (decision.outcome != rl4sys::Outcome::Decided) return 1;
        std::printf("version %lld chose %lld with %s\n", static_cast<long long>(file.version),
                    static_cast<long long>(decision.choices[0]), policy.kernel_set());
        return decision.choices[0] == 1 ? 0 : 1;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
