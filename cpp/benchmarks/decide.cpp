// How long one decision takes, noise included, for policies over vectors and with each set of kernels.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "policy/kernel_sets.hpp"
#include "policy/plan.hpp"
#include "policy/programs.hpp"

namespace {

using Clock = std::chrono::steady_clock;

/// Nanoseconds of each of many decisions, sorted.
std::vector<double> measure(const rl4sys::PolicySpec& spec, const rl4sys::detail::Kernels& kernels, int decisions) {
    rl4sys::detail::Plan plan(spec, rl4sys::wavy_weights(spec), kernels);
    const rl4sys::KeyedNoise noise(7, {"benchmark", "agent", 0}, rl4sys::noise_size(spec));
    std::vector<float> numbers(noise.size()), x(spec.program.inputs[0].values());
    const void* observation[] = {x.data()};
    std::vector<double> times;
    times.reserve(static_cast<std::size_t>(decisions));
    for (int step = 0; step < decisions; ++step) {
        x[0] = static_cast<float>(step % 17) / 17.0F;
        const Clock::time_point start = Clock::now();
        noise.at(static_cast<std::uint64_t>(step), numbers.data());
        const rl4sys::Decision decision = plan.decide(observation, numbers.data(), nullptr);
        times.push_back(std::chrono::duration<double, std::nano>(Clock::now() - start).count());
        if (decision.outcome != rl4sys::Outcome::Decided) std::abort();
    }
    std::sort(times.begin(), times.end());
    return times;
}

}  // namespace

int main() {
    struct Size {
        std::uint32_t inputs, width, choices;
    };
    std::printf("%-18s %-10s %10s %10s\n", "policy", "kernels", "median ns", "p99 ns");
    for (const Size size : {Size{8, 64, 4}, Size{32, 128, 8}, Size{64, 256, 16}, Size{64, 512, 8}}) {
        const rl4sys::PolicySpec spec = rl4sys::dense_policy(size.inputs, {size.width, size.width}, size.choices);
        for (const auto* kernels : rl4sys::detail::available_kernels()) {
            const std::vector<double> times = measure(spec, *kernels, size.width > 256 ? 20000 : 200000);
            char name[32];
            std::snprintf(name, sizeof(name), "%u-%u-%u-%u", size.inputs, size.width, size.width, size.choices);
            std::printf("%-18s %-10s %10.0f %10.0f\n", name, kernels->name, times[times.size() / 2],
                        times[times.size() * 99 / 100]);
        }
    }
    return 0;
}
