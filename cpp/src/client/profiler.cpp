#include "client/profiler.hpp"

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>

#include "client/clock.hpp"
#include "client/process_usage.hpp"

namespace rl4sys::client {
namespace {

// Seconds of a block.
constexpr double shortest_block = 0.5;
constexpr double longest_block = 2.0;
// Seconds after a change of level that are not measured: what was recorded before is still sent.
constexpr double settling = 0.15;
constexpr double first_decision_pause = 0.05;
constexpr const char* stopped = "it was ended early";

std::uint64_t decisions_of(const Health& health) {
    return health.decisions + health.fallback_decisions;
}

}  // namespace

std::vector<std::vector<std::pair<ClientLevel, double>>> profile_rounds(const wire::ProfileOrder& order) {
    std::mt19937_64 random(order.seed);
    std::uniform_real_distribution<double> length(shortest_block, longest_block);
    const double mean = (shortest_block + longest_block) / 2 * client_levels.size();
    const auto count = static_cast<std::size_t>(std::max(2.0, std::round(order.seconds / mean)));
    std::vector<std::vector<std::pair<ClientLevel, double>>> rounds(count);
    for (auto& blocks : rounds) {
        auto levels = client_levels;
        std::shuffle(levels.begin(), levels.end(), random);
        for (const ClientLevel level : levels) {
            blocks.emplace_back(level, length(random));
        }
    }
    return rounds;
}

std::string Profiler::run() {
    parts_.times.start_profile();
    std::string why;
    try {
        why = measure();
    } catch (const std::exception& error) {
        why = std::string("measuring failed: ") + error.what();
    }
    parts_.governor.set_level(ClientLevel::Full);
    parts_.times.end_profile();
    return why;
}

std::string Profiler::measure() {
    if (std::string why = problem(); !why.empty()) {
        return why;
    }
    std::uint32_t round = 0;
    for (const auto& blocks : profile_rounds(order_)) {
        for (const auto& [level, seconds] : blocks) {
            std::optional<wire::ProfileBlock> measured = block(level, seconds);
            if (!measured) {
                return stopped;
            }
            if (std::string why = interruption(); !why.empty()) {
                return why;
            }
            measured->round = round;
            on_block_(std::move(*measured));
        }
        ++round;
    }
    return "";
}

std::string Profiler::problem() {
    const double deadline = steady_seconds() + longest_wait_;
    const auto seconds = std::to_string(std::lround(longest_wait_));
    while (!parts_.governor.snapshot() || decisions_of(parts_.health()) == 0) {
        if (steady_seconds() >= deadline) {
            return parts_.governor.snapshot()
                       ? "it took no decision within " + seconds + " s: let it call act, also when it is measured"
                       : "no policy arrived within " + seconds + " s: start the training server first";
        }
        if (wait_(first_decision_pause)) {
            return stopped;
        }
    }
    if (!parts_.has_fallback) {
        return "it has no fallback, which decides at the level 'off': pass one to rl4sys::connect";
    }
    return interruption();
}

std::string Profiler::interruption() const {
    const std::string off = std::string(parts_.governor.plan()->off);
    return off.empty() || off == "level" ? "" : "its policy does not decide, because " + explain_off(off);
}

std::optional<wire::ProfileBlock> Profiler::block(ClientLevel level, double seconds) {
    parts_.governor.set_level(level);
    if (wait_(settling)) {
        return std::nullopt;
    }
    parts_.times.take_profile();
    const ProcessUsage usage = ProcessUsage::now();
    const wire::Traffic traffic = parts_.traffic();
    const std::uint64_t decisions = decisions_of(parts_.health());
    if (wait_(seconds)) {
        return std::nullopt;
    }
    const ProcessUsage after = ProcessUsage::now();
    const wire::Traffic passed = parts_.traffic();
    const Health health = parts_.health();
    wire::ProfileBlock block;
    block.level = name_of(level);
    ProfiledTimes times = parts_.times.take_profile();
    block.times = std::move(times.counts);
    block.longest_nanoseconds = times.longest;
    block.seconds = after.seconds - usage.seconds;
    block.decisions = decisions_of(health) - decisions;
    block.cpu_seconds = after.cpu - usage.cpu;
    block.background_cpu_seconds = std::max(0.0, after.background_cpu - usage.background_cpu);
    block.memory_bytes = after.memory;
    block.waits = after.waits - usage.waits;
    block.preemptions = after.preemptions - usage.preemptions;
    block.traffic = {passed.sent_messages - traffic.sent_messages, passed.sent_bytes - traffic.sent_bytes,
                     passed.received_messages - traffic.received_messages,
                     passed.received_bytes - traffic.received_bytes};
    block.backlog_segments = health.backlog;
    block.backlog_bytes = health.backlog_bytes;
    block.version_age_seconds = health.age;
    return block;
}

}  // namespace rl4sys::client
