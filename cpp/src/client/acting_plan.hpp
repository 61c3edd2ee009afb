/// Who decides at present, and what is recorded: the plan that all acting threads read by reference.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "client/snapshot.hpp"

namespace rl4sys::client {

/// Who chose the actions of a segment.
enum class DecidedBy : std::uint8_t { Policy, Fallback, Incumbent };

/// How decisions are taken. Any change is another object, so that a decision compares one number.
struct ActingPlan {
    /// The policy; null before the first one arrives.
    SharedSnapshot snapshot;
    /// Why the policy does not decide: `control`, `kill_file`, `lease`, `no_policy`, `no_answer` or `level`; empty if
    /// it does.
    std::string_view off = "no_policy";
    DecidedBy decided_by = DecidedBy::Fallback;
    /// Whether decisions are recorded.
    bool records = false;
    /// Whether the policy decides beside the fallback, to be compared.
    bool observes = false;
    /// Whether the policy decides on the server.
    bool asks = false;

    friend bool operator==(const ActingPlan& one, const ActingPlan& other) {
        return one.snapshot == other.snapshot && one.off == other.off && one.decided_by == other.decided_by &&
               one.records == other.records && one.observes == other.observes && one.asks == other.asks;
    }
};

/// Why the policy does not decide, for people.
inline std::string explain_off(std::string_view off) {
    return off == "control"     ? "an operator ordered it off"
           : off == "kill_file" ? "the kill file exists"
           : off == "lease"     ? "the server was silent for longer than the lease"
           : off == "no_answer" ? "the server did not answer in time"
           : off == "level"     ? "the client is at the level `off`"
                                : "none has arrived yet";
}

using SharedPlan = std::shared_ptr<const ActingPlan>;

}  // namespace rl4sys::client
