// A pre-fork server: the parent forks workers and never connects; each worker connects after the fork and learns which
// of four backends to send its next request to.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <random>
#include <string>
#include <vector>

#include "options.hpp"
#include "rl4sys/agent.hpp"
#include "rl4sys/log.hpp"

namespace {

constexpr std::size_t backends = 4;
constexpr std::size_t requests_of_an_episode = 64;

volatile std::sig_atomic_t interrupted = 0;

/// How much work waits at each backend. They are equally fast, and requests are not equally long.
class Backends {
public:
    explicit Backends(std::uint64_t seed) : random_(seed) {}

    const std::array<float, backends>& waiting() const { return waiting_; }

    /// Send the next request to a backend: the time that it waits there.
    float send(std::size_t backend) {
        const float wait = waiting_[backend];
        waiting_[backend] += length_(random_);
        for (float& work : waiting_) {
            work = std::max(0.0F, work - served);
        }
        return wait;
    }

private:
    static constexpr float served = 0.2F;

    std::mt19937_64 random_;
    std::exponential_distribution<float> length_{1.5F};
    std::array<float, backends> waiting_{};
};

/// Serve requests, as the client `prefork-NUMBER`.
void serve(rl4sys::ClientSettings settings, int number, std::size_t requests) {
    // A name of its own: experience and health are kept by name.
    settings.client_id += "-" + std::to_string(number);
    // No fallback: with one, `connect` returns as soon as the server is out of reach, and these simulated requests
    // would all be decided, and not recorded, before a busy server answers. A real worker has one.
    rl4sys::Agent agent = rl4sys::connect(settings);
    Backends system(static_cast<std::uint64_t>(::getpid()));
    rl4sys::Episode episode = agent.episode();
    double waited = 0.0;
    std::size_t served = 0;
    for (; served < requests && interrupted == 0; ++served) {
        if (served > 0 && served % requests_of_an_episode == 0) {
            episode.end(system.waiting(), rl4sys::Ending::Truncated);
            episode = agent.episode();
        }
        const rl4sys::Action action = episode.act(system.waiting());
        const float wait = system.send(static_cast<std::size_t>(action.choice()));
        episode.reward(-wait);
        waited += wait;
    }
    episode.end(system.waiting(), rl4sys::Ending::Truncated);
    const bool sent = agent.flush(30.0);
    std::printf("worker %d: %zu requests, mean wait %.2f, %s\n", number, served,
                waited / static_cast<double>(std::max<std::size_t>(served, 1)),
                sent ? "all experience is on the server" : "some experience still waits");
}

/// Fork the workers and wait for them; returns how many failed.
int run(const examples::Options& options) {
    rl4sys::ClientSettings settings = rl4sys::load_settings(options.text("--config"));
    settings.server = options.text("--server");
    const auto requests = static_cast<std::size_t>(options.number("--requests", 1));
    std::signal(SIGINT, [](int) { interrupted = 1; });
    std::vector<pid_t> workers;
    for (int number = 0; number < static_cast<int>(options.number("--workers", 1)); ++number) {
        const pid_t worker = ::fork();
        if (worker == 0) {
            serve(settings, number, requests);
            std::exit(0);
        }
        workers.push_back(worker);
    }
    int failed = 0;
    for (const pid_t worker : workers) {
        int status = 0;
        // Ctrl-C is sent to the workers as well, which end by themselves.
        while (::waitpid(worker, &status, 0) < 0 && errno == EINTR) {
        }
        failed += status == 0 ? 0 : 1;
    }
    return failed;
}

}  // namespace

int main(int count, char** words) {
    rl4sys::log_to(rl4sys::standard_error(), rl4sys::LogLevel::Warning);
    try {
        const examples::Options options(count, words,
                                        "A pre-fork server whose workers learn which backend to send a request to.\n"
                                        "Start a training server first: rl4sys serve",
                                        {{"--config", RL4SYS_EXAMPLES "/prefork.json", "Settings of the workers"},
                                         {"--server", "127.0.0.1:50051", "Address of the training server"},
                                         {"--workers", "4", "Processes that are forked"},
                                         {"--requests", "50000", "Requests of each worker"}});
        if (options.is_on("--help")) {
            std::fputs(options.help().c_str(), stdout);
            return 0;
        }
        return run(options);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
