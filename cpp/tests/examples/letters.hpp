/// @file
/// Short traces as words: every letter is a page.
#pragma once

#include <string>

#include "cache/cache.hpp"

namespace examples {

inline Trace trace_of(const std::string& letters) {
    Trace trace{"letters", {}, 26};
    for (const char letter : letters) {
        trace.requests.push_back(static_cast<Page>(letter - 'a'));
    }
    return trace;
}

/// One character for each request: `h` for a hit, `.` for a miss.
inline std::string served(Cache& cache, const std::string& letters) {
    std::string hits;
    for (const Page page : trace_of(letters).requests) {
        hits += cache.request(page) ? 'h' : '.';
    }
    return hits;
}

}  // namespace examples
