// The cost of the client in a hot loop during training: rl4sys_act_benchmark ADDRESS [DECISIONS]
//
// A policy 8-64-64-4 acts and records; every decision is rewarded and sent, and new versions arrive.
// - act: the time of `Episode::act` after a gap of about 20 us, and what the loop's thread allocates once it is warm;
// - loop: a computation of about 100 us with a decision after it, against the computation alone, in alternating blocks.
// Prints one JSON object. benchmarks/cpp_client.py starts a server for it and shows the Python client beside it.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <limits>
#include <string>
#include <vector>

#include "counted_allocations.hpp"
#include "rl4sys/agent.hpp"

namespace {

using Clock = std::chrono::steady_clock;
using Micros = std::chrono::duration<double, std::micro>;

rl4sys::ClientSettings settings_for(const std::string& address) {
    rl4sys::ClientSettings settings = rl4sys::parse_settings(R"({
        "client_id": "cpp-benchmark", "algorithm": {"name": "ppo"}, "observation": 8, "action": 4,
        "network": {"actor": {"hidden_dims": [64, 64]}}, "timeout": 60})");
    settings.server = address;
    return settings;
}

/// A computation of a given duration that the compiler cannot remove.
class Work {
public:
    explicit Work(double micros) {
        // The fastest of several: the others were preempted.
        double quickest = std::numeric_limits<double>::max();
        for (int trial = 0; trial < 20; ++trial) {
            const auto begin = Clock::now();
            compute(100'000);
            quickest = std::min(quickest, Micros(Clock::now() - begin).count());
        }
        rounds_ = static_cast<std::uint64_t>(1e5 * micros / quickest);
    }

    void operator()() { compute(rounds_); }

private:
    void compute(std::uint64_t rounds) {
        for (std::uint64_t round = 0; round < rounds; ++round) {
            state_ = state_ * 6364136223846793005U + 1442695040888963407U;
        }
        seen_ = state_;
    }

    std::uint64_t rounds_ = 0;
    std::uint64_t state_ = 1;
    volatile std::uint64_t seen_ = 0;
};

/// A system whose observation changes and for which one choice is right.
class System {
public:
    explicit System(rl4sys::Agent& agent) : agent_(agent), episode_(agent.episode()) {}

    /// A burst: many episodes at once, each with a full segment.
    void rush() {
        std::vector<rl4sys::Episode> episodes;
        for (int number = 0; number < 32; ++number) {
            episodes.push_back(agent_.episode());
            for (std::size_t step = 0; step < agent_.settings().max_segment_length; ++step) {
                static_cast<void>(episodes.back().act(seen_));
            }
        }
        for (rl4sys::Episode& episode : episodes) {
            episode.end(seen_, rl4sys::Ending::Truncated);
        }
    }

    /// Observe, decide and reward; the microseconds of `act` alone.
    double decide() {
        const auto right = static_cast<std::int64_t>(++steps_ % 4);
        for (std::size_t place = 0; place < seen_.size(); ++place) {
            seen_[place] = static_cast<std::int64_t>(place) == right ? 1.0F : 0.0F;
        }
        const auto begin = Clock::now();
        const rl4sys::Action action = episode_.act(seen_);
        const Micros taken = Clock::now() - begin;
        episode_.reward(action.choice() == right ? 1.0 : 0.0);
        return taken.count();
    }

private:
    rl4sys::Agent& agent_;
    rl4sys::Episode episode_;
    std::array<float, 8> seen_{};
    std::uint64_t steps_ = 0;
};

struct Decisions {
    double median, p99, most;
    std::size_t allocated;
};

Decisions measure_act(System& system, std::size_t decisions) {
    Work gap(20.0);
    std::vector<double> times(decisions);
    // Not measured: warm up until there are as many buffers as the largest burst needs.
    system.rush();
    for (std::size_t step = 0; step < decisions / 10; ++step) {
        gap();
        system.decide();
    }
    rl4sys::testing::count_allocations(true);
    for (double& time : times) {
        gap();
        time = system.decide();
    }
    rl4sys::testing::count_allocations(false);
    std::sort(times.begin(), times.end());
    return {times[decisions / 2], times[decisions * 99 / 100], times.back(), rl4sys::testing::counted_allocations()};
}

struct Loop {
    double bare, ratio;
};

Loop measure_loop(System& system, std::size_t decisions) {
    constexpr std::size_t block = 100;
    Work work(100.0);
    std::vector<double> bare, ratios;
    for (std::size_t round = 0; round < std::max<std::size_t>(1, decisions / block); ++round) {
        const auto begin = Clock::now();
        for (std::size_t step = 0; step < block; ++step) {
            work();
        }
        const auto middle = Clock::now();
        for (std::size_t step = 0; step < block; ++step) {
            work();
            system.decide();
        }
        const Micros alone = middle - begin;
        const Micros together = Clock::now() - middle;
        bare.push_back(alone.count() / block);
        ratios.push_back(alone / together);
    }
    const auto median = [](std::vector<double>& values) {
        std::sort(values.begin(), values.end());
        return values[values.size() / 2];
    };
    return {median(bare), median(ratios)};
}

}  // namespace

int main(int count, char** words) {
    if (count < 2) {
        std::fprintf(stderr, "usage: %s HOST:PORT [DECISIONS]\n", words[0]);
        return 64;
    }
    try {
        const std::size_t decisions = count > 2 ? std::max(1000UL, std::stoul(words[2])) : 200'000;
        rl4sys::Agent agent = rl4sys::connect(settings_for(words[1]));
        const std::uint64_t first = agent.health().version.value_or(0);
        System system(agent);
        const Decisions act = measure_act(system, decisions);
        const Loop loop = measure_loop(system, decisions / 4);
        const rl4sys::Health health = agent.health();
        std::printf(
            "{\"median_us\": %.3f, \"p99_us\": %.3f, \"max_us\": %.1f, \"allocations\": %zu, \"decisions\": %zu, "
            "\"loop_us\": %.2f, \"loop_ratio\": %.4f, \"versions\": %llu, \"drops\": %zu}\n",
            act.median, act.p99, act.most, act.allocated, decisions, loop.bare, loop.ratio,
            static_cast<unsigned long long>(health.version.value_or(0) - first), health.drops.size());
        agent.close(5.0);
        return 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
