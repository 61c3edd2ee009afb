/// @file
/// Belady's bound: no cache of this size can hit more often.
#pragma once

#include <cstdint>
#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "cache.hpp"

namespace examples {

/// Evicts the page whose next request is furthest away (Belady, 1966). It must know the trace in advance.
class BeladyCache : public Cache {
public:
    BeladyCache(const Trace& trace, std::size_t capacity)
        : next_request_(trace.requests.size()), next_of_(trace.page_count, never), capacity_(capacity) {
        for (std::size_t request = trace.requests.size(); request-- > 0;) {
            next_request_[request] = std::exchange(next_of_[trace.requests[request]], request);
        }
    }

    /// Pages must come in the order of the trace.
    bool request(Page page) override {
        const bool hit = order_.erase({next_of_[page], page}) > 0;
        if (!hit && order_.size() == capacity_) order_.erase(std::prev(order_.end()));
        next_of_[page] = next_request_[now_++];
        order_.insert({next_of_[page], page});
        return hit;
    }

private:
    static constexpr std::size_t never = std::numeric_limits<std::size_t>::max();

    /// By request: when its page is requested again.
    std::vector<std::size_t> next_request_;
    /// By page: when it is requested next.
    std::vector<std::size_t> next_of_;
    std::size_t capacity_;
    /// The pages in the cache by their next request.
    std::set<std::pair<std::size_t, Page>> order_;
    std::size_t now_ = 0;
};

}  // namespace examples
