// One-step episodes at a given rate: rl4sys_short_episodes_benchmark CONFIG RATE SECONDS
//
// Prints how many ended, the CPU of the whole client for each, and how many were dropped. benchmarks/short_episodes.py
// starts a server for it and shows the Python client beside it.
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <thread>

#include "rl4sys/agent.hpp"

namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr std::uint64_t at_once = 100;

int run(const char* config, double rate, double seconds) {
    rl4sys::Agent agent = rl4sys::connect(rl4sys::load_settings(config));
    const std::array<float, 8> seen{0.1F, -0.2F, 0.3F, -0.4F, 0.5F, -0.6F, 0.7F, -0.8F};
    const auto begin = Clock::now();
    const std::clock_t cpu = std::clock();
    std::uint64_t ended = 0;
    double now = 0.0;
    while ((now = Seconds(Clock::now() - begin).count()) < seconds) {
        if (static_cast<double>(ended) > rate * now) {
            std::this_thread::sleep_for(Seconds(static_cast<double>(ended) / rate - now));
        }
        for (std::uint64_t number = 0; number < at_once; ++number, ++ended) {
            rl4sys::Episode episode = agent.episode();
            static_cast<void>(episode.act(seen));
            episode.reward(1.0F);
            episode.end();
        }
    }
    const double taken = Seconds(Clock::now() - begin).count();
    agent.flush(120.0);
    const double used = static_cast<double>(std::clock() - cpu) / CLOCKS_PER_SEC;
    const rl4sys::Health health = agent.health();
    std::uint64_t dropped = 0;
    for (const auto& [reason, count] : health.drops) {
        dropped += count;
    }
    std::printf(
        "%llu episodes, %.0f/s, %.2f µs of client CPU each, %llu acknowledged, %llu not recorded, dropped %llu\n",
        static_cast<unsigned long long>(ended), static_cast<double>(ended) / taken,
        used / static_cast<double>(ended) * 1e6, static_cast<unsigned long long>(health.acknowledged),
        static_cast<unsigned long long>(health.thinned_episodes), static_cast<unsigned long long>(dropped));
    return 0;
}

}  // namespace

int main(int count, char** words) {
    if (count != 4) {
        std::fprintf(stderr, "usage: rl4sys_short_episodes_benchmark CONFIG RATE SECONDS\n");
        return 64;
    }
    try {
        return run(words[1], std::atof(words[2]), std::atof(words[3]));
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
