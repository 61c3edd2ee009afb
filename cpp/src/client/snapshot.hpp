/// Immutable snapshots of a policy, and the newest one that all threads act with.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "rl4sys/policy.hpp"
#include "wire/segment_format.hpp"

namespace rl4sys::client {

/// A policy at one version, with everything that a decision needs. Compared by identity.
struct Snapshot {
    std::shared_ptr<const PolicySpec> spec;           ///< The same object for as long as the policy stays the same.
    std::shared_ptr<const PolicySpec> exploit;        ///< Over the same weights; null where it is not known.
    std::shared_ptr<const wire::SegmentFormat> form;  ///< The same object for as long as the schema stays the same.
    std::string schema_hash;
    std::string learner;
    std::string lineage;  ///< Identifies the history of the weights; empty from servers that know no lineages.
    std::uint64_t version = 0;
    SharedWeights weights;
    std::size_t max_steps = 0;  ///< Most steps of one segment that the server accepts.
};

using SharedSnapshot = std::shared_ptr<const Snapshot>;

/// Holds the snapshot to act with; publishing replaces it.
///
/// A decision compares one number; only if it has changed does it take the lock, to copy a pointer.
class NewestSnapshot {
public:
    /// Increases with every publication; 0 before the first.
    std::uint64_t generation() const noexcept { return generation_.load(std::memory_order_acquire); }
    /// The newest snapshot; null before the first.
    SharedSnapshot get() const;
    /// When it was published, by the publisher's clock.
    double since() const;

    /// Replace the snapshot; later decisions use this one.
    void publish(SharedSnapshot snapshot, double now);
    /// Wake all waiting threads.
    void wake();
    /// Wait until a condition holds; it is checked when something is published and when `wake` is called.
    void wait(double seconds, const std::function<bool()>& holds);

private:
    mutable std::mutex mutex_;
    std::condition_variable published_;
    SharedSnapshot snapshot_;
    double since_ = 0.0;
    std::atomic<std::uint64_t> generation_ = 0;
};

}  // namespace rl4sys::client
