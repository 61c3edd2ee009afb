/// Lanes: every open episode has a lane of its own, which a later episode reuses.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "client/lane.hpp"

namespace rl4sys::client {

/// Hands out the free lane with the lowest number; makes a new one when all are taken.
class LaneAllocator {
public:
    LaneAllocator(const SharedState& shared, std::string client, std::uint64_t first_episode)
        : shared_(shared), client_(std::move(client)), first_episode_(first_episode) {}

    /// Taken in all lanes together.
    std::uint64_t decisions() const;
    /// The lanes with an open episode, each with the number of that episode.
    std::vector<std::pair<Lane*, std::uint64_t>> open();
    std::size_t open_count() const;
    /// A lane for a new episode, and the number of that.
    std::pair<Lane*, std::uint64_t> take();
    /// Its episode is over.
    void release(const Lane& lane);

private:
    const SharedState& shared_;
    std::string client_;
    std::uint64_t first_episode_;
    mutable std::mutex mutex_;
    std::deque<Lane> lanes_;
    std::vector<std::uint64_t> episodes_;
    std::set<std::uint64_t> free_;
};

}  // namespace rl4sys::client
