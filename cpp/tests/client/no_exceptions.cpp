// A program without exceptions can use the headers: this file is compiled with -fno-exceptions, and linked.
#include <rl4sys/rl4sys.h>

#include <array>
#include <rl4sys/agent.hpp>
#include <rl4sys/log.hpp>
#include <rl4sys/noise.hpp>
#include <rl4sys/policy.hpp>
#include <rl4sys/policy_spec.hpp>
#include <rl4sys/settings.hpp>
#include <rl4sys/weights.hpp>

/// What such a program does: every problem of a decision is a value.
std::int64_t decide_without_exceptions(rl4sys::Episode& episode) {
    const std::array<float, 2> seen{1.0F, 2.0F};
    const rl4sys::Action action = episode.act(seen);
    return action ? action.choice() : -1;
}
