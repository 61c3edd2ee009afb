/// @file
/// The policy of an agent chooses the victims.
#pragma once

#include <array>

#include "latencies.hpp"
#include "rl4sys/agent.hpp"
#include "victim_chooser.hpp"

namespace examples {

/// One episode without end. A regretted decision gets the reward -1 by its id, long after it was taken.
class AgentChooser : public VictimChooser {
public:
    explicit AgentChooser(rl4sys::Agent& agent) : episode_(agent.episode()) {}

    Victim choose(const Candidates& candidates) override {
        const rl4sys::ArrayView rows(candidates.front().data(), candidate_count * feature_count);
        const std::array<float, 1> count{candidate_count};
        const rl4sys::Action action = latencies_.time([&] {
            return episode_.act({{"candidates", rows}, {"candidate_count", count}});
        });
        // Even without an action the cache must evict something: the sample is random, so its first page will do.
        return action ? Victim{static_cast<std::size_t>(action.choice()), action.decision()} : Victim{};
    }

    void regret(std::int64_t decision) override { episode_.reward(-1.0, decision); }

    const Latencies& latencies() const noexcept { return latencies_; }

private:
    rl4sys::Episode episode_;
    Latencies latencies_;
};

}  // namespace examples
