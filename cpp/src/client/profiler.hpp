/// Measures what the client costs the system it is in: alternates its levels in random blocks, in the same process.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/decision_times.hpp"
#include "client/governor.hpp"
#include "rl4sys/client_level.hpp"
#include "rl4sys/health.hpp"
#include "wire/calls.hpp"

namespace rl4sys::client {

/// Levels and seconds of all blocks: in each round every level once, in random order.
std::vector<std::vector<std::pair<ClientLevel, double>>> profile_rounds(const wire::ProfileOrder& order);

/// What a profiler measures of its agent.
struct ProfiledParts {
    Governor& governor;
    DecisionTimes& times;
    std::function<Health()> health;
    std::function<wire::Traffic()> traffic;
    bool has_fallback = false;
};

/// Carries out one order in a thread of its own.
class Profiler {
public:
    using OnBlock = std::function<void(wire::ProfileBlock)>;
    /// Waits for some seconds; true if the profile shall end.
    using Wait = std::function<bool(double seconds)>;

    Profiler(wire::ProfileOrder order, ProfiledParts parts, OnBlock on_block, Wait wait, double longest_wait = 30.0)
        : order_(order),
          parts_(std::move(parts)),
          on_block_(std::move(on_block)),
          wait_(std::move(wait)),
          longest_wait_(longest_wait) {}

    /// Measure every block, and return to the normal state. Returns why it could not be measured to the end, if so.
    std::string run();

private:
    std::string measure();
    /// Why nothing can be measured, once the system decides; empty if it can.
    std::string problem();
    /// Why the policy does not decide at levels at which it should; empty if it does.
    std::string interruption() const;
    /// One level for some seconds; nothing if the profile shall end.
    std::optional<wire::ProfileBlock> block(ClientLevel level, double seconds);

    wire::ProfileOrder order_;
    ProfiledParts parts_;
    OnBlock on_block_;
    Wait wait_;
    double longest_wait_;
};

}  // namespace rl4sys::client
