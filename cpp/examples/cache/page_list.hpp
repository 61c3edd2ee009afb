/// @file
/// A list of pages that takes any page out in constant time.
#pragma once

#include <cstddef>
#include <vector>

#include "trace.hpp"

namespace examples {

/// Pages from the newest to the oldest, each at most once. Nothing is allocated after construction.
class PageList {
public:
    explicit PageList(std::size_t page_count)
        : none_(static_cast<Page>(page_count)), links_(page_count + 1, Link{none_, none_, false}) {}

    std::size_t size() const noexcept { return size_; }
    bool has(Page page) const noexcept { return links_[page].is_listed; }
    /// `none()` if the list is empty.
    Page newest() const noexcept { return links_[none_].older; }
    Page oldest() const noexcept { return links_[none_].newer; }
    /// `none()` after the newest page.
    Page newer_than(Page page) const noexcept { return links_[page].newer; }
    /// No page; also what comes before the first and after the last.
    Page none() const noexcept { return none_; }

    void push_newest(Page page) noexcept {
        const Page before = newest();
        links_[page] = {none_, before, true};
        links_[before].newer = page;
        links_[none_].older = page;
        ++size_;
    }

    void remove(Page page) noexcept {
        const Link link = links_[page];
        links_[link.newer].older = link.older;
        links_[link.older].newer = link.newer;
        links_[page].is_listed = false;
        --size_;
    }

    Page pop_oldest() noexcept {
        const Page page = oldest();
        remove(page);
        return page;
    }

    void make_newest(Page page) noexcept {
        remove(page);
        push_newest(page);
    }

private:
    struct Link {
        Page newer;
        Page older;
        bool is_listed;
    };

    /// The last link closes the ring: its `older` is the newest page, its `newer` the oldest.
    Page none_;
    std::vector<Link> links_;
    std::size_t size_ = 0;
};

}  // namespace examples
