/// Counters and connection state, shared by the threads of an agent and reported by `health()`.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "client/retries.hpp"

namespace rl4sys::client {

/// Who talks to the server: three threads, and decisions with `decide: server`.
enum class Caller { Courier, Watcher, Reporter, Decisions };

/// Counts rare events and tracks whether the server can be reached. Thread-safe.
class AgentStatus {
public:
    std::atomic<std::uint64_t> late_rewards = 0;
    std::atomic<std::uint64_t> fallback_decisions = 0;
    std::atomic<std::uint64_t> incumbent_decisions = 0;
    std::atomic<std::uint64_t> unanswered_decisions = 0;
    std::atomic<std::uint64_t> damaged_patches = 0;
    std::atomic<std::uint64_t> bad_inputs = 0;
    std::atomic<std::uint64_t> defaulted_inputs = 0;
    std::atomic<std::uint64_t> versions_not_taken = 0;
    std::atomic<std::uint64_t> thinned_episodes = 0;
    std::atomic<std::uint64_t> unrecorded_decisions = 0;
    std::atomic<std::uint64_t> observed_decisions = 0;
    std::atomic<std::uint64_t> agreed_decisions = 0;
    /// How often the server replied; a change shows that it was heard of.
    std::atomic<std::uint64_t> heard = 0;

    /// Count an observation or decision that cannot be used, and log the first one.
    void bad_input(const std::string& problem);
    /// Count segments that will never be sent; true the first time, when it deserves a log line.
    bool drop(const std::string& reason, std::uint64_t count = 1);
    std::map<std::string, std::uint64_t> drops() const;

    bool connected() const;
    std::string last_error() const;
    /// The error that stops sending or receiving at present; nothing while both work.
    std::optional<std::string> stopped() const;

    /// Note that a call of the thread `caller` succeeded.
    void succeeded(Caller caller);
    /// Take what the server says is wrong with this client; empty if nothing is.
    void warn(const std::string& warning);
    std::string warning() const;
    /// Note a failed call that will be retried.
    void failed(const std::string& error, Reach reach = Reach::Answered);
    /// How far the last failed call came; nothing if none failed.
    std::optional<Reach> reach() const;
    /// Note a failed call of the thread `caller` that fails again until its cause is repaired.
    void refused(Caller caller, const std::string& error);
    /// Note that an error ended a background thread.
    void died(const std::string& name, const std::string& error);
    /// Note an error that is not a failure of the connection.
    void note(const std::string& error);
    /// True for the first call.
    bool first_refusal();

private:
    mutable std::mutex mutex_;
    std::map<std::string, std::uint64_t> drops_;
    bool connected_ = false;
    bool refusal_reported_ = false;
    std::string last_error_;
    std::optional<Reach> reach_;
    std::string warning_;
    std::optional<std::string> died_;
    std::map<Caller, std::string> refusals_;  ///< The error of each thread that the server refuses at present.
};

}  // namespace rl4sys::client
