/// Immutable snapshots of a policy.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

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

}  // namespace rl4sys::client
