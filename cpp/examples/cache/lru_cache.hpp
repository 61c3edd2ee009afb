/// @file
/// LRU: evicts the page that was used least recently.
#pragma once

#include "cache.hpp"
#include "page_list.hpp"

namespace examples {

class LruCache : public Cache {
public:
    LruCache(std::size_t page_count, std::size_t capacity) : pages_(page_count), capacity_(capacity) {}

    bool request(Page page) override {
        if (pages_.has(page)) {
            pages_.make_newest(page);
            return true;
        }
        if (pages_.size() == capacity_) pages_.pop_oldest();
        pages_.push_newest(page);
        return false;
    }

private:
    PageList pages_;
    std::size_t capacity_;
};

}  // namespace examples
