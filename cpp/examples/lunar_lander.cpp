// Learns to land on the moon through a training server. The dynamics are Gymnasium's, behind a pipe; everything else,
// the policy included, runs in this process. Many simulators run at once, each with its own open episode.
#include <csignal>
#include <cstdio>
#include <deque>
#include <exception>
#include <numeric>
#include <vector>

#include "latencies.hpp"
#include "options.hpp"
#include "pace.hpp"
#include "rl4sys/agent.hpp"
#include "rl4sys/log.hpp"
#include "simulators.hpp"

namespace {

volatile std::sig_atomic_t interrupted = 0;

double mean(const std::deque<double>& values) {
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// One open episode.
struct Flight {
    rl4sys::Episode episode;
    double total = 0.0;
};

void fly(rl4sys::Agent& agent, examples::Simulators& simulators, std::size_t episodes, examples::Pace pace) {
    constexpr std::size_t recent = 50;
    examples::Latencies latencies;
    std::deque<double> returns;
    std::vector<Flight> flights;
    for (std::size_t number = 0; number < simulators.landings().size(); ++number) {
        flights.push_back({agent.episode()});
    }
    std::size_t landed = 0;
    while (landed < episodes && interrupted == 0) {
        for (std::size_t number = 0; number < flights.size(); ++number) {
            const rl4sys::Action action =
                latencies.time([&] { return flights[number].episode.act(simulators.landings()[number].next); });
            simulators.actions()[number] = static_cast<std::uint8_t>(action.choice());
        }
        simulators.step();
        pace.wait(flights.size());
        for (std::size_t number = 0; number < flights.size(); ++number) {
            const examples::Landing& landing = simulators.landings()[number];
            Flight& flight = flights[number];
            flight.episode.reward(landing.reward);
            flight.total += landing.reward;
            if (landing.ending == 0.0F) {
                continue;
            }
            flight.episode.end(landing.observed,
                               landing.ending == 1.0F ? rl4sys::Ending::Terminated : rl4sys::Ending::Truncated);
            returns.push_back(flight.total);
            if (returns.size() > recent) {
                returns.pop_front();
            }
            flight = {agent.episode()};
            if (++landed % 25 == 0 || landed == episodes) {
                const rl4sys::Health health = agent.health();
                std::printf(
                    "episode %5zu  steps %8llu  mean return %7.1f  version %4llu  act median %.2f us, p99 %.2f us\n",
                    landed, static_cast<unsigned long long>(health.decisions), mean(returns),
                    static_cast<unsigned long long>(health.version.value_or(0)), latencies.quantile(0.5),
                    latencies.quantile(0.99));
                std::fflush(stdout);
            }
        }
    }
    for (std::size_t number = 0; number < flights.size(); ++number) {
        flights[number].episode.end(simulators.landings()[number].next, rl4sys::Ending::Truncated);
    }
}

void run(const examples::Options& options) {
    const auto count = static_cast<std::size_t>(options.number("--simulators", 1));
    const auto episodes = static_cast<std::size_t>(options.number("--episodes", 1));
    const auto seed = static_cast<std::uint64_t>(options.number("--seed"));
    const examples::Pace pace(options.number("--rate"));
    rl4sys::ClientSettings settings = rl4sys::load_settings(options.text("--config"));
    settings.server = options.text("--server");
    // Before `connect`, so that the child process inherits nothing of the agent.
    examples::Simulators simulators(options.text("--python"), RL4SYS_EXAMPLES "/gym_pipe.py", count, seed);
    rl4sys::Agent agent = rl4sys::connect(settings);
    std::signal(SIGINT, [](int) { interrupted = 1; });
    fly(agent, simulators, episodes, pace);
    const bool sent = agent.flush(30.0);
    const rl4sys::Health health = agent.health();
    std::printf("%llu segments are safe on the server%s; version %llu.\n",
                static_cast<unsigned long long>(health.acknowledged), sent ? "" : ", some still wait",
                static_cast<unsigned long long>(health.version.value_or(0)));
}

}  // namespace

int main(int count, char** words) {
    rl4sys::log_to(rl4sys::standard_error(), rl4sys::LogLevel::Warning);
    try {
        const examples::Options options(
            count, words,
            "Learns to land: Gymnasium's LunarLander-v3, stepped by Python processes, with a policy in C++.\n"
            "Start a training server first: rl4sys serve",
            {{"--config", RL4SYS_EXAMPLES "/lunar_lander.json", "Settings of the agent"},
             {"--server", "127.0.0.1:50051", "Address of the training server"},
             {"--python", "python3", "A Python that has Gymnasium"},
             {"--simulators", "16", "Episodes at once"},
             {"--episodes", "1500", "Episodes in all"},
             {"--rate", "2000", "Decisions a second; 0 for as fast as possible"},
             {"--seed", "0", "Seed of the simulators"}});
        if (options.is_on("--help")) {
            std::fputs(options.help().c_str(), stdout);
        } else {
            run(options);
        }
        return 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
