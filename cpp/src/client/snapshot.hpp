/// A policy at one version: never changed, only replaced by reference.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "rl4sys/policy.hpp"
#include "wire/segment_format.hpp"

namespace rl4sys::client {

/// Everything that a decision needs. Two are the same only if they are one object.
struct Snapshot {
    std::shared_ptr<const PolicySpec> spec;           ///< One object for as long as the policy stays the same.
    std::shared_ptr<const wire::SegmentFormat> form;  ///< One object for as long as the schema stays the same.
    std::string schema_hash;
    std::string learner;
    std::uint64_t version = 0;
    SharedWeights weights;
    std::size_t max_steps = 0;  ///< Of one segment, for the server to take it.
};

using SharedSnapshot = std::shared_ptr<const Snapshot>;

/// Holds the snapshot to act with; whoever publishes replaces it whole.
///
/// A decision compares one number, and takes the lock, for the time of copying a pointer, only after it has changed.
class Newest {
public:
    /// Grows with every publication; 0 before the first.
    std::uint64_t generation() const noexcept { return generation_.load(std::memory_order_acquire); }
    /// The newest snapshot; null before the first.
    SharedSnapshot get() const;
    /// When it was published, by the clock of the publisher.
    double since() const;

    /// Decisions that begin from now on use this one.
    void publish(SharedSnapshot snapshot, double now);
    /// Let those who wait look again.
    void wake();
    /// Until something is published or `wake` is called.
    void wait(double seconds);

private:
    mutable std::mutex mutex_;
    std::condition_variable published_;
    SharedSnapshot snapshot_;
    double since_ = 0.0;
    std::uint64_t wakes_ = 0;
    std::atomic<std::uint64_t> generation_ = 0;
};

}  // namespace rl4sys::client
