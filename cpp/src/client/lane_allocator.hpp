/// Gives every open episode a lane of its own, which a later episode reuses.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <utility>
#include <vector>

#include "client/lane.hpp"

namespace rl4sys::client {

/// Hands out the free lane with the lowest number, or a new lane when all are taken.
class LaneAllocator {
public:
    LaneAllocator(const SharedState& shared, std::uint64_t first_episode)
        : shared_(shared), first_episode_(first_episode) {}

    /// Decisions taken in all lanes together.
    std::uint64_t decisions() const;
    /// The lanes with an open episode, each with the number of that episode.
    std::vector<std::pair<Lane*, std::uint64_t>> open();
    std::size_t open_count() const;
    /// A lane for a new episode, and the number of the episode.
    std::pair<Lane*, std::uint64_t> take();
    /// Free the lane of an episode that has ended.
    void release(const Lane& lane);

private:
    const SharedState& shared_;
    std::uint64_t first_episode_;
    mutable std::mutex mutex_;
    std::deque<Lane> lanes_;
    std::vector<std::uint64_t> free_;  ///< A heap: the lowest number first.
};

}  // namespace rl4sys::client
