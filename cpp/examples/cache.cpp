// A cache that learns what to evict, beside caches that do not learn and the bound that no cache can pass.
//
// On a miss in a full cache the policy observes 16 randomly sampled pages (as Redis does) and chooses the one to evict.
// The reward of a decision is -1 if its victim is requested again within the next 2 x capacity evictions, and 0
// otherwise. The policy learns in one pass, while the trace is served. The parts are in cache/.
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "cache/agent_chooser.hpp"
#include "cache/learned_cache.hpp"
#include "cache/learner_pace.hpp"
#include "cache/report.hpp"
#include "cache/rivals.hpp"
#include "options.hpp"
#include "pace.hpp"
#include "rl4sys/agent.hpp"
#include "rl4sys/log.hpp"

namespace {

const char* const about =
    "Serves a trace of page requests with several caches of the same size and prints their hit rates, block by block.\n"
    "LRU, LFU (with ageing), ARC, SIEVE and S3-FIFO are rivals; Belady knows the future and is the bound. `learned`\n"
    "learns what to evict while it serves. It needs a training server, so start one first:\n"
    "\n"
    "  rl4sys serve\n"
    "  cache                                         a generated trace, all caches\n"
    "  cache --trace OLTP.lis.zst                    a trace of yours\n"
    "  cache --caches LRU,S3-FIFO,Belady             needs no server\n"
    "  cache --json > rates.json                     for plot_cache.py, which draws it\n"
    "\n"
    "A line of a trace has four numbers: first page, number of pages, 0, request number.\n"
    "The learner needs time: at a high --rate the trace is over before it has learned much. A live system does not\n"
    "wait for it; with --lag the replay does, so that results do not depend on how busy the machine is.";

const std::vector<examples::Option> known{
    {"--trace", "", "A file, plain or .zst, or - for the standard input. Default: a generated trace."},
    {"--requests", "1000000", "Length of the generated trace"},
    {"--capacity", "1000", "Pages that each cache holds"},
    {"--caches", "LRU,LFU,ARC,SIEVE,S3-FIFO,Belady,learned", "Which caches to compare"},
    {"--block", "100000", "Requests for each line of the table"},
    {"--rate", "20000", "Requests a second to the learned cache; 0 for as fast as possible"},
    {"--lag", "0", "Wait for a new version after this many evictions, up to a second; 0 waits never"},
    {"--server", "127.0.0.1:50051", "Address of the training server"},
    {"--config", RL4SYS_EXAMPLES "/cache.json", "Settings of the agent"},
    {"--seed", "0", "Seed of the generated trace and of the samples"},
    {"--json", "off", "Print JSON instead of the table."},
};

volatile std::sig_atomic_t interrupted = 0;

std::size_t whole_number(const examples::Options& options, const char* name, double least) {
    return static_cast<std::size_t>(options.number(name, least));
}

std::vector<std::string> names(const std::string& listed) {
    std::vector<std::string> found;
    std::istringstream words(listed);
    for (std::string word; std::getline(words, word, ',');) {
        found.push_back(word);
    }
    return found;
}

examples::Trace load_trace(const examples::Options& options) {
    if (!options.text("--trace").empty()) {
        return examples::read_trace(options.text("--trace"));
    }
    examples::GeneratedTraceSpec spec;
    spec.requests = whole_number(options, "--requests", 1);
    spec.seed = whole_number(options, "--seed", 0);
    return examples::generate_trace(spec);
}

/// Serves the trace with the learned cache, beside the rates of its rivals.
void learn(examples::CacheReport& report, const examples::Trace& trace, const examples::Options& options) {
    rl4sys::ClientSettings settings = rl4sys::load_settings(options.text("--config"));
    settings.server = options.text("--server");
    settings.reward_window = 2 * report.capacity;
    rl4sys::Agent agent = rl4sys::connect(settings);
    examples::AgentChooser chooser(agent);
    examples::LearnedCache cache(trace.page_count, report.capacity, chooser, whole_number(options, "--seed", 0));
    examples::Pace pace(options.number("--rate"));
    examples::LearnerPace learner(agent, whole_number(options, "--lag", 0));
    report.rates.emplace_back("learned", trace.requests.size(), report.block);
    examples::HitRates& rates = report.rates.back();
    const bool shows_table = !options.is_on("--json");
    if (shows_table) std::fputs(table_header(report.rates).c_str(), stdout);
    for (const examples::Page page : trace.requests) {
        if (interrupted != 0) break;
        rates.count(cache.request(page));
        if (rates.counted() % 64 == 0) {
            pace.wait(64);
            learner.wait(cache.evictions());
        }
        if (shows_table && (rates.counted() % report.block == 0 || rates.counted() == trace.requests.size())) {
            std::fputs(table_row(report.rates, rates.block_count() - 1, rates.counted()).c_str(), stdout);
            std::fflush(stdout);
        }
    }
    agent.flush(30.0);
    const rl4sys::Health health = agent.health();
    report.learned = {health.version.value_or(0),        cache.evictions(),
                      cache.guarded_evictions(),         cache.guard().activations(),
                      chooser.latencies().quantile(0.5), chooser.latencies().quantile(0.99)};
}

void print_table(const examples::CacheReport& report) {
    std::fputs(table_header(report.rates).c_str(), stdout);
    for (std::size_t number = 0; number < report.rates.front().block_count(); ++number) {
        const std::size_t requests = std::min(report.requests, (number + 1) * report.block);
        std::fputs(table_row(report.rates, number, requests).c_str(), stdout);
    }
}

void compare(const examples::Options& options) {
    const std::vector<std::string> wanted = names(options.text("--caches"));
    const bool learns = std::count(wanted.begin(), wanted.end(), "learned") > 0;
    if (wanted.empty()) {
        throw std::invalid_argument("--caches names no cache; for example --caches LRU,S3-FIFO,learned.");
    }
    const examples::Trace trace = load_trace(options);
    examples::CacheReport report;
    report.trace = trace.name;
    report.requests = trace.requests.size();
    report.pages = trace.page_count;
    report.capacity = whole_number(options, "--capacity", 1);
    report.block = whole_number(options, "--block", 1);
    for (const std::string& name : wanted) {
        if (name == "learned") continue;
        const auto cache = examples::make_rival(name, trace, report.capacity);
        report.rates.push_back(examples::replay(name, *cache, trace, report.block));
    }
    if (learns) {
        learn(report, trace, options);
    }
    if (options.is_on("--json")) {
        std::fputs(report_json(report).c_str(), stdout);
        return;
    }
    if (!learns) print_table(report);
    std::fputs(table_end(report).c_str(), stdout);
}

}  // namespace

int main(int count, char** words) {
    rl4sys::log_to(rl4sys::standard_error(), rl4sys::LogLevel::Warning);
    std::signal(SIGINT, [](int) { interrupted = 1; });
    try {
        const examples::Options options(count, words, about, known);
        if (options.is_on("--help")) {
            std::fputs(options.help().c_str(), stdout);
        } else {
            compare(options);
        }
        return 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
