#include "client/lane_allocator.hpp"

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
    for (std::size_t index = 0; index < lanes_.size(); ++index) {
        if (free_.count(index) == 0) {
            found.emplace_back(&lanes_[index], episodes_[index]);
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
        free_.insert(lanes_.size());
        lanes_.emplace_back(shared_, StreamKey{client_, "agent", lanes_.size()}, first_episode_);
        episodes_.push_back(0);
    }
    Lane& lane = lanes_[*free_.begin()];
    free_.erase(free_.begin());
    episodes_[lane.index()] = lane.begin();
    return {&lane, episodes_[lane.index()]};
}

void LaneAllocator::release(const Lane& lane) {
    const std::lock_guard lock(mutex_);
    free_.insert(lane.index());
}

}  // namespace rl4sys::client
