/// Immutable snapshots of a policy, and the runtime that each acting thread has for them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "client/policy_interface.hpp"

namespace rl4sys::client {

/// A policy at one version, with everything that a decision needs. Compared by identity.
struct Snapshot {
    SharedInterface interface;
    std::string schema_hash;
    std::string learner;
    std::uint64_t version = 0;
    SharedWeights weights;
    std::size_t max_steps = 0;  ///< Most steps of one segment that the server accepts.
    std::string lineage;        ///< Identifies the history of the weights; empty from servers that know no lineages.

    /// The format of its segments; the same object for as long as the schema stays the same.
    const std::shared_ptr<const wire::SegmentFormat>& form() const { return interface->form; }
};

using SharedSnapshot = std::shared_ptr<const Snapshot>;

/// A policy of one acting thread, since a policy serves one thread at a time, and what a decision writes.
struct ThreadPolicy {
    explicit ThreadPolicy(const Snapshot& snapshot);

    std::weak_ptr<const PolicyInterface> interface;
    Policy policy;
    std::vector<float> noise;
    std::vector<const void*> rows;  ///< One of each observation.
};

/// The policy of this thread, with the weights of the snapshot. It is kept until the thread ends, or until the thread
/// needs another one and the agent is gone.
ThreadPolicy& thread_policy(const Snapshot& snapshot);

}  // namespace rl4sys::client
