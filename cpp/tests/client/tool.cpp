// Runs parts of the client, and whole clients, from the command line for tests/cpp.
#include <rl4sys/v1/policy.pb.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <iterator>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "records/disk_outbox.hpp"
#include "rl4sys/agent.hpp"
#include "rl4sys/log.hpp"
#include "rl4sys/rl4sys_agent.hpp"
#include "wire/policies.hpp"
#include "wire/segment_packs.hpp"

namespace {

using Arguments = std::vector<std::string>;
using nlohmann::json;

std::string hex_of(const std::string& bytes) {
    std::string text;
    for (const char byte : bytes) {
        char digits[3];
        std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned>(static_cast<unsigned char>(byte)));
        text += digits;
    }
    return text;
}

std::string bytes_of(const std::string& hex) {
    std::string bytes;
    for (std::size_t at = 0; at + 1 < hex.size(); at += 2) {
        bytes += static_cast<char>(std::stoi(hex.substr(at, 2), nullptr, 16));
    }
    return bytes;
}

std::string standard_input() {
    return {std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
}

/// DIR EPOCH COUNT: offer payloads, acknowledge every second one, and exit without closing.
int fill_outbox(const Arguments& arguments) {
    const std::uint64_t epoch = std::stoull(arguments.at(1));
    rl4sys::records::DiskOutbox outbox(arguments.at(0), epoch, {}, 512);
    for (int number = 0; number < std::stoi(arguments.at(2)); ++number) {
        outbox.offer("parcel " + std::to_string(number));
        if (number % 2 == 1) {
            outbox.acknowledge({epoch, static_cast<std::uint64_t>(number)});
        }
    }
    ::_exit(0);
}

/// DIR EPOCH: print the unsettled parcels, one "epoch sequence payload" per line.
int list_outbox(const Arguments& arguments) {
    const rl4sys::records::DiskOutbox outbox(arguments.at(0), std::stoull(arguments.at(1)));
    for (const auto& parcel : outbox.unsettled()) {
        std::cout << parcel.key.epoch << " " << parcel.key.sequence << " " << hex_of(*parcel.payload);
        std::cout << (parcel.segments == 1 ? "" : " " + std::to_string(parcel.segments)) << "\n";
    }
    return 0;
}

/// The values of a segment, kept for as long as their view is used.
struct GivenSegment {
    explicit GivenSegment(const json& input) : agent(input["agent"]) {
        kept.reserve(64);
        view.agent = agent;
        view.lane = input["lane"];
        view.episode = input["episode"];
        view.start = input["start"];
        view.policy_version = input["policy_version"];
        view.ending = static_cast<rl4sys::Ending>(input["ending"].get<int>());
        view.steps = input["steps"];
        for (const json& values : input["observation"]) {
            view.observation.push_back(column(values));
        }
        view.action = column(input["action"]);
        view.reward = column(input["reward"]);
        for (const json& values : input["extras"]) {
            view.extras.push_back(column(values));
        }
        for (const json& values : input["carry"]) {
            view.carry.push_back(column(values));
        }
    }
    GivenSegment(const GivenSegment&) = delete;
    GivenSegment& operator=(const GivenSegment&) = delete;

    std::string_view column(const json& hex) {
        kept.push_back(bytes_of(hex));
        return kept.back();
    }

    std::string agent;
    std::vector<std::string> kept;
    rl4sys::wire::SegmentView view;
};

/// Standard input: a policy's spec and a segment's values; prints the encoded segment.
int encode_segment(const Arguments&) {
    const json input = json::parse(standard_input());
    const GivenSegment segment(input);
    const rl4sys::PolicySpec spec = rl4sys::policy_from_json(input["spec"].get<std::string>());
    std::cout << hex_of(rl4sys::wire::encode_segment(rl4sys::wire::format_of(spec), segment.view)) << "\n";
    return 0;
}

/// Standard input: a list of such segments; prints them as one pack, and then each of the pack alone.
int encode_pack(const Arguments&) {
    const json input = json::parse(standard_input());
    std::vector<std::unique_ptr<GivenSegment>> given;
    std::vector<rl4sys::wire::SegmentView> views;
    for (const json& each : input) {
        given.push_back(std::make_unique<GivenSegment>(each));
        views.push_back(given.back()->view);
    }
    const rl4sys::PolicySpec spec = rl4sys::policy_from_json(input[0]["spec"].get<std::string>());
    const std::string pack = rl4sys::wire::encode_pack(rl4sys::wire::format_of(spec), views);
    std::cout << hex_of(pack) << "\n";
    for (const std::string& alone : rl4sys::wire::split_pack(pack, static_cast<std::uint32_t>(views.size()))) {
        std::cout << hex_of(alone) << "\n";
    }
    return 0;
}

/// Standard input: a serialized PolicySpec in hexadecimal; prints its canonical text.
int decode_policy(const Arguments&) {
    rl4sys::v1::PolicySpec message;
    if (!message.ParseFromString(bytes_of(standard_input()))) {
        return 1;
    }
    std::cout << rl4sys::policy_to_json(rl4sys::wire::decode_policy(message)) << "\n";
    return 0;
}

/// FILE: the settings, as Python can compare them.
int show_settings(const Arguments& arguments) {
    const rl4sys::ClientSettings settings = rl4sys::load_settings(arguments.at(0));
    json observation = json::array();
    for (const rl4sys::ArraySpec& spec : settings.observation) {
        observation.push_back({spec.name, std::string(rl4sys::element_name(spec.type)), spec.shape});
    }
    const json parameters = settings.parameters_json.empty() ? json::object() : json::parse(settings.parameters_json);
    std::cout << json{{"client_id", settings.client_id},
                      {"server", settings.server},
                      {"algorithm", settings.algorithm},
                      {"parameters", parameters},
                      {"observation", observation},
                      {"timeout", settings.timeout},
                      {"max_segment_length", settings.max_segment_length},
                      {"send_interval", settings.send_interval},
                      {"send_frequency", settings.send_frequency ? json(*settings.send_frequency) : json()},
                      {"seed", settings.seed ? json(*settings.seed) : json()}}
              << "\n";
    return 0;
}

void print(const rl4sys::Health& health) {
    std::cout << json{{"connected", health.connected},
                      {"learner", health.learner},
                      {"version", health.version ? json(*health.version) : json()},
                      {"decisions", health.decisions},
                      {"unrecorded_decisions", health.unrecorded_decisions},
                      {"backlog", health.backlog},
                      {"acknowledged", health.acknowledged},
                      {"drops", health.drops},
                      {"late_rewards", health.late_rewards},
                      {"damaged_patches", health.damaged_patches},
                      {"runtime", health.runtime},
                      {"last_error", health.last_error},
                      {"stopped", health.stopped}}
              << std::endl;
}

/// CONFIG EPISODES VERSION SECONDS [CLOSING]: act until this many episodes were played with this version, or time
/// is up.
///
/// The sign of the first observed number gives the better choice. Prints a line when ready, health at the end.
/// CLOSING is the time in seconds for flushing and closing.
int run_agent(const Arguments& arguments) {
    rl4sys::log_to(rl4sys::standard_error());
    rl4sys::Agent agent = rl4sys::connect(std::filesystem::path(arguments.at(0)));
    std::cout << "ready" << std::endl;
    const std::uint64_t episodes = std::stoull(arguments.at(1));
    const std::uint64_t version = std::stoull(arguments.at(2));
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(std::stoi(arguments.at(3)));
    std::mt19937 random(5);
    std::uniform_real_distribution<float> number(-1.0F, 1.0F);
    std::uint64_t played = 0;
    while ((played < episodes || agent.health().version.value_or(0) < version) &&
           std::chrono::steady_clock::now() < deadline) {
        rl4sys::Episode episode = agent.episode();
        std::vector<float> seen{number(random), number(random)};
        for (int step = 0; step < 20; ++step) {
            const rl4sys::Action action = episode.act(seen);
            episode.reward(action.choice() == (seen[0] > 0 ? 1 : 0) ? 1.0 : 0.0);
            seen = {number(random), number(random)};
        }
        episode.end(seen, rl4sys::Ending::Truncated);
        ++played;
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    const double closing = arguments.size() > 4 ? std::stod(arguments[4]) : 30.0;
    const bool flushed = agent.flush(closing);
    print(agent.health());
    agent.close(closing);
    return flushed ? 0 : 2;
}

/// CONFIG SECONDS: act with a fallback, and print a line whenever something else decides than before.
int run_controlled(const Arguments& arguments) {
    rl4sys::Agent agent =
        rl4sys::connect(std::filesystem::path(arguments.at(0)), [](const rl4sys::Observation&) { return 1; });
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(std::stoi(arguments.at(1)));
    rl4sys::Episode episode = agent.episode();
    std::string before = "nothing";
    while (std::chrono::steady_clock::now() < deadline) {
        const rl4sys::Action action = episode.act(std::vector<float>{0.5F, 0.5F});
        const rl4sys::Health health = agent.health();
        const std::string now = action.is_fallback() ? health.off : "";
        if (now != before && (now.empty() == !action.is_fallback())) {
            std::cout << json{{"off", now}, {"control", health.control}, {"version", health.version.value_or(0)}}
                      << std::endl;
            before = now;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    agent.close(0.2);
    return 0;
}

/// CONFIG: for each number on standard input take so many decisions with a fallback that chooses 1, and print them.
int run_asked(const Arguments& arguments) {
    rl4sys::Agent agent =
        rl4sys::connect(std::filesystem::path(arguments.at(0)), [](const rl4sys::Observation&) { return 1; });
    rl4sys::Episode episode = agent.episode();
    int step = 0;
    for (std::string line; std::getline(std::cin, line);) {
        std::vector<std::int64_t> choices;
        int fallbacks = 0;
        for (const int until = step + std::stoi(line); step < until; ++step) {
            const std::vector<float> seen{static_cast<float>(step % 7) / 8.0F, static_cast<float>(step % 5) / 4.0F};
            const rl4sys::Action action = episode.act(seen);
            choices.push_back(action.choice());
            fallbacks += action.is_fallback() ? 1 : 0;
        }
        std::cout << json{{"choices", choices},
                          {"fallbacks", fallbacks},
                          {"unanswered", agent.health().unanswered_decisions},
                          {"version", agent.health().version.value_or(0)}}
                  << std::endl;
    }
    agent.close(5.0);
    return 0;
}

/// One decision of a new client with this name, acknowledged by the server.
bool learns_as(rl4sys::ClientSettings settings, const std::string& name) {
    settings.client_id = name;
    rl4sys::Agent agent = rl4sys::connect(settings);
    {
        rl4sys::Episode episode = agent.episode();
        episode.act(std::vector<float>{0.5F, 0.5F});
        episode.end(std::vector<float>{0.5F, 0.5F});
    }
    return agent.flush(20.0);
}

/// Fork children that work at the same time; returns how many did not succeed.
int failures_of(int children, const std::function<bool(int)>& work) {
    std::vector<pid_t> started;
    for (int number = 0; number < children; ++number) {
        const pid_t child = ::fork();
        if (child == 0) {
            const int code = work(number) ? 0 : 1;
            // Both ways for a child to end: with and without the exit handlers of its parent.
            number % 2 == 0 ? ::_exit(code) : std::exit(code);
        }
        started.push_back(child);
    }
    int failed = 0;
    for (const pid_t child : started) {
        int status = -1;
        ::waitpid(child, &status, 0);
        failed += status == 0 ? 0 : 1;
    }
    return failed;
}

/// CONFIG CHILDREN ROUNDS: connect, and fork children that connect, round after round, while this process acts on.
/// Prints how many children could use the agent of the parent or could not connect themselves, and how many warnings
/// the parent had.
int run_forked(const Arguments& arguments) {
    const rl4sys::ClientSettings settings = rl4sys::load_settings(arguments.at(0));
    const int children = std::stoi(arguments.at(1));
    std::atomic<int> lost = 0;
    rl4sys::log_to([&](rl4sys::LogLevel, std::string_view) { ++lost; }, rl4sys::LogLevel::Warning);
    rl4sys::Agent agent = rl4sys::connect(settings);
    int failed = 0;
    for (int round = 0; round < std::stoi(arguments.at(2)); ++round) {
        rl4sys::Episode episode = agent.episode();
        episode.act(std::vector<float>{0.5F, 0.5F});
        failed += failures_of(children, [&](int number) {
            const bool refused = episode.act(std::vector<float>{0.5F, 0.5F}).problem() == rl4sys::Problem::Forked;
            const std::string name = "child-" + std::to_string(round) + "-" + std::to_string(number);
            try {
                return refused && learns_as(settings, name);
            } catch (const rl4sys::ConnectError& error) {
                std::cerr << error.what() << std::endl;
                return false;
            }
        });
        episode.end(std::vector<float>{0.5F, 0.5F});
    }
    const bool flushed = agent.flush(20.0);
    const bool connected = agent.health().connected;
    std::cout << json{{"failed", failed}, {"flushed", flushed}, {"connected", connected}, {"lost", lost.load()}}
              << std::endl;
    return 0;
}

/// CONFIG: connect, and fork a child that cannot use gRPC. Prints why it is refused without a fallback, and its health
/// with one.
int run_forked_without_grpc(const Arguments& arguments) {
    const rl4sys::ClientSettings settings = rl4sys::load_settings(arguments.at(0));
    rl4sys::Agent agent = rl4sys::connect(settings);
    int pipe[2];
    if (::pipe(pipe) != 0) {
        return 1;
    }
    const pid_t child = ::fork();
    if (child == 0) {
        json found;
        try {
            rl4sys::connect(settings);
        } catch (const rl4sys::ConnectError& error) {
            found["refused"] = error.what();
        }
        rl4sys::Agent own = rl4sys::connect(settings, [](const rl4sys::Observation&) { return 1; });
        found["fallbacks"] = own.episode().act(std::vector<float>{0.5F, 0.5F}).is_fallback() ? 1 : 0;
        found["last_error"] = own.health().last_error;
        found["connected"] = own.health().connected;
        own.close(0.0);
        const std::string text = found.dump();
        ::_exit(::write(pipe[1], text.data(), text.size()) < 0 ? 1 : 0);
    }
    ::close(pipe[1]);
    std::string text(4096, '\0');
    text.resize(static_cast<std::size_t>(std::max<ssize_t>(::read(pipe[0], text.data(), text.size()), 0)));
    ::waitpid(child, nullptr, 0);
    json found = json::parse(text);
    agent.episode().act(std::vector<float>{0.5F, 0.5F});
    found["flushed"] = agent.flush(20.0);
    std::cout << found << std::endl;
    return 0;
}

/// CONFIG SECONDS: one episode of one decision, and close within so many seconds. Prints what waited to be sent.
int run_once(const Arguments& arguments) {
    rl4sys::Agent agent = rl4sys::connect(std::filesystem::path(arguments.at(0)));
    rl4sys::Episode episode = agent.episode();
    episode.act(std::vector<float>{0.5F, 0.5F}).choice();
    episode.end(std::vector<float>{0.5F, 0.5F});
    const rl4sys::Health health = agent.health();
    agent.close(std::stod(arguments.at(1)));
    std::cout << json{{"backlog", health.backlog}, {"connected", health.connected}} << std::endl;
    return 0;
}

/// CONFIG: end the program with an agent and episodes open that are destroyed after `main`, one of them after the
/// agent.
int leave_open(const Arguments& arguments) {
    static std::optional<rl4sys::Episode> late;
    static rl4sys::Agent agent = rl4sys::connect(std::filesystem::path(arguments.at(0)));
    static rl4sys::Episode early = agent.episode();
    late = agent.episode();
    // The second decision of each is left without an outcome, and so is not sent.
    for (int step = 0; step < 2; ++step) {
        early.act(std::vector<float>{0.5F, 0.5F});
        late->act(std::vector<float>{0.5F, 0.5F});
    }
    return 0;
}

/// CONFIG: connect without a fallback or a log, and print the health.
int try_connect(const Arguments& arguments) {
    print(rl4sys::connect(std::filesystem::path(arguments.at(0))).health());
    return 0;
}

/// The name and the blocked signals of every thread but the first.
json threads_but_the_first() {
    json threads = json::array();
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
        std::string name;
        std::getline(std::ifstream(task.path() / "comm"), name);
        std::ifstream status(task.path() / "status");
        for (std::string line; task.path().filename() != std::to_string(::getpid()) && std::getline(status, line);) {
            if (line.rfind("SigBlk:", 0) == 0) {
                threads.push_back({name, std::stoull(line.substr(7), nullptr, 16)});
            }
        }
    }
    return threads;
}

bool has_thread(const json& threads, const std::string& name) {
    return std::any_of(threads.begin(), threads.end(), [&](const json& thread) { return thread.at(0) == name; });
}

/// CONFIG: connect, decide and fork, and print the name and the blocked signals of every thread but the first.
int list_threads(const Arguments& arguments) {
    rl4sys::Agent agent = rl4sys::connect(std::filesystem::path(arguments.at(0)), [](const auto&) { return 1; });
    agent.episode().act(std::vector<float>{0.5F, 0.5F});
    if (const pid_t child = ::fork(); child == 0) {
        ::_exit(0);
    } else {
        ::waitpid(child, nullptr, 0);
    }
    agent.flush(20.0);
    json threads = threads_but_the_first();
    // A thread of gRPC takes its name after it has started.
    for (int wait = 0; wait < 1000 && !has_thread(threads, "grpc_global_tim"); ++wait) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
        threads = threads_but_the_first();
    }
    std::cout << threads << std::endl;
    return 0;
}

/// CONFIG EPISODES: the same with the original API.
int run_original(const Arguments& arguments) {
    rl4sys::RL4SysAgent agent(arguments.at(0), true);
    for (int played = 0; played < std::stoi(arguments.at(1)); ++played) {
        std::shared_ptr<rl4sys::RL4SysTrajectory> trajectory;
        for (int step = 0; step < 10; ++step) {
            auto answer = agent.requestForAction(trajectory, {0.5F, static_cast<float>(step)});
            if (!answer) {
                std::cerr << agent.lastError() << "\n";
                return 1;
            }
            trajectory = answer->first;
            rl4sys::RL4SysAction& action = answer->second;
            agent.addToTrajectory(trajectory, action);
            agent.updateActionReward(action, 5.0);
            agent.updateActionReward(action, static_cast<double>(action.getChoice()));
            if (step == 9) {
                agent.markEndOfTrajectory(trajectory, action);
            }
        }
    }
    const bool flushed = agent.flushTrajectories(30.0);
    if (agent.getCurrentModelVersion() < 0) {
        return 1;
    }
    print(agent.agent()->health());
    agent.close();
    return flushed ? 0 : 2;
}

}  // namespace

int main(int count, char** words) {
    const std::map<std::string, std::function<int(const Arguments&)>> commands{
        {"fill-outbox", fill_outbox},
        {"list-outbox", list_outbox},
        {"encode-segment", encode_segment},
        {"encode-pack", encode_pack},
        {"decode-policy", decode_policy},
        {"show-settings", show_settings},
        {"run", run_agent},
        {"run-original", run_original},
        {"run-controlled", run_controlled},
        {"run-asked", run_asked},
        {"run-forked", run_forked},
        {"list-threads", list_threads},
        {"try-connect", try_connect},
        {"run-once", run_once},
        {"leave-open", leave_open},
        {"run-forked-without-grpc", run_forked_without_grpc},
    };
    const Arguments arguments(words + 1, words + count);
    const auto command = commands.find(arguments.empty() ? "" : arguments[0]);
    if (command == commands.end()) {
        std::cerr << "usage: rl4sys_tool COMMAND ARGUMENTS…\n";
        return 64;
    }
    try {
        return command->second({arguments.begin() + 1, arguments.end()});
    } catch (const std::exception& error) {
        std::cerr << error.what() << "\n";
        return 1;
    }
}
