/// @file
/// Reads the policies that `rl4sys policy export` writes: the one header that a program without a server needs.
///
/// @code
/// const rl4sys::PortablePolicy file = rl4sys::PortablePolicy::read("cartpole.rl4sys");
/// rl4sys::Policy policy(file.exploit, file.weights);
/// const float state[4] = {};
/// const void* observation[] = {state};
/// const rl4sys::Decision decision = policy.decide(observation, nullptr);
/// @endcode
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include "rl4sys/policy.hpp"

namespace rl4sys {

/// A file is not a policy, or was changed after it was written.
class PolicyFileDamaged : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// Everything that acting needs: the explore and exploit policies, their weights and their version.
struct PortablePolicy {
    /// Decides as in training: stochastic, or with exploration noise.
    PolicySpec explore;
    /// Decides as well as it can.
    PolicySpec exploit;
    SharedWeights weights;
    std::int64_t version = 0;
    /// Environment steps of training.
    std::int64_t steps = 0;

    /// Read a file that Python's `PortablePolicy.write` or `rl4sys policy export` wrote.
    /// @throws PolicyFileDamaged if it cannot be read or is not such a file; BadPolicy if it has a spec that is none.
    static PortablePolicy read(const std::string& path);
    /// The policy of a file's contents; `path` is its name in errors.
    static PortablePolicy from_bytes(std::string_view data, const std::string& path);
};

}  // namespace rl4sys
