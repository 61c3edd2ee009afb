/// Looks after the kill file and the lease in a background thread, so that a decision never has to.
#pragma once

#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <optional>

#include "client/agent_status.hpp"
#include "client/clock.hpp"
#include "client/governor.hpp"

namespace rl4sys::client {

/// Turns the policy off while the kill file exists, or while the server was silent for longer than the lease.
class Guard {
public:
    Guard(Governor& governor, AgentStatus& status, Clock clock, std::optional<std::filesystem::path> kill_file,
          std::optional<double> lease);

    /// Whether there is anything to look after.
    bool is_needed() const { return kill_file_ || lease_; }
    /// Look until `stop` is called.
    void run();
    /// Look once.
    void look();
    /// End `run` soon.
    void stop();

private:
    bool exists(const std::filesystem::path& path);

    Governor& governor_;
    AgentStatus& status_;
    Clock clock_;
    std::optional<std::filesystem::path> kill_file_;
    std::optional<double> lease_;
    std::uint64_t heard_;
    double heard_at_;
    bool unreadable_reported_ = false;
    std::mutex mutex_;
    std::condition_variable stopped_;
    bool stopping_ = false;
};

}  // namespace rl4sys::client
