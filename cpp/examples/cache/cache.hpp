/// @file
/// What every cache here does: it serves requests and decides what to evict.
#pragma once

#include "trace.hpp"

namespace examples {

class Cache {
public:
    Cache() = default;
    Cache(const Cache&) = delete;
    Cache& operator=(const Cache&) = delete;
    virtual ~Cache() = default;

    /// Request a page, which is then in the cache; returns whether it was there before.
    virtual bool request(Page page) = 0;
};

}  // namespace examples
