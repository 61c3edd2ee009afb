/// @file
/// Numbers pages in the order of their first requests.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "trace.hpp"

namespace examples {

class PageNumbers {
public:
    /// The number of a page by its name in the trace; a new one for a new name.
    Page of(std::uint64_t name) { return numbers_.try_emplace(name, static_cast<Page>(numbers_.size())).first->second; }

    std::size_t count() const noexcept { return numbers_.size(); }

private:
    std::unordered_map<std::uint64_t, Page> numbers_;
};

}  // namespace examples
