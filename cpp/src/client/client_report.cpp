#include "client/client_report.hpp"

#include <algorithm>
#include <string>

namespace rl4sys::client {
namespace {

constexpr std::size_t most_text = 1024;

/// The beginning of a text, cut between two characters of UTF-8.
std::string shortened(const std::string& text) {
    std::size_t size = std::min(text.size(), most_text);
    while (size > 0 && size < text.size() && (static_cast<unsigned char>(text[size]) & 0xC0U) == 0x80U) {
        --size;
    }
    return text.substr(0, size);
}

}  // namespace

wire::ClientReport client_report(const Health& health, double uptime) {
    wire::ClientReport report;
    report.version = health.version;
    report.lineage = health.lineage;
    report.mode = health.mode;
    report.control_sequence = health.control_sequence;
    report.off = health.off.empty() && !health.lineage_problem.empty() ? "other_lineage" : health.off;
    report.decisions = health.decisions + health.fallback_decisions;
    report.fallback_decisions = health.fallback_decisions;
    report.unanswered_decisions = health.unanswered_decisions;
    report.bad_inputs = health.bad_inputs;
    report.thinned_episodes = health.thinned_episodes;
    report.open_episodes = health.open_episodes;
    report.backlog_segments = health.backlog;
    report.backlog_bytes = health.backlog_bytes;
    report.drops = health.drops;
    report.late_rewards = health.late_rewards;
    report.decision_time = health.decision_time;
    report.last_error = shortened(health.last_error);
    report.uptime_seconds = uptime;
    return report;
}

}  // namespace rl4sys::client
