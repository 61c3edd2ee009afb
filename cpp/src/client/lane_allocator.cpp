#include "client/lane_allocator.hpp"

#include <algorithm>
#include <functional>

namespace rl4sys::client {

std::uint64_t LaneAllocator::decisions() const {
    const std::lock_guard lock(mutex_);
    std::uint64_t sum = 0;
    for (const Lane& lane : lanes_) {
        sum += lane.decisions();
    }
    return sum;
}

std::vector<std::pair<Lane*, std::uint64_t>> LaneAllocator::open() {
    const std::lock_guard lock(mutex_);
    std::vector<std::pair<Lane*, std::uint64_t>> found;
    for (Lane& lane : lanes_) {
        if (const auto episode = lane.open_episode()) {
            found.emplace_back(&lane, *episode);
        }
    }
    return found;
}

std::size_t LaneAllocator::open_count() const {
    const std::lock_guard lock(mutex_);
    return lanes_.size() - free_.size();
}

std::pair<Lane*, std::uint64_t> LaneAllocator::take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) {
        // Room for all lanes, so that releasing one allocates nothing.
        if (free_.capacity() <= lanes_.size()) {
            free_.reserve(2 * lanes_.size() + 1);
        }
        lanes_.emplace_back(shared_, lanes_.size(), first_episode_);
        free_.push_back(lanes_.size() - 1);
    }
    std::pop_heap(free_.begin(), free_.end(), std::greater<>());
    Lane& lane = lanes_[free_.back()];
    free_.pop_back();
    return {&lane, lane.begin()};
}

void LaneAllocator::release(const Lane& lane) {
    const std::lock_guard lock(mutex_);
    free_.push_back(lane.index());
    std::push_heap(free_.begin(), free_.end(), std::greater<>());
}

}  // namespace rl4sys::client
