/// @file
/// The caches that do not learn, by name.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cache.hpp"
#include "hit_rates.hpp"

namespace examples {

/// `LRU`, `LFU`, `ARC`, `SIEVE`, `S3-FIFO` and `Belady`.
const std::vector<std::string>& rival_names();

/// @throws std::invalid_argument for another name.
std::unique_ptr<Cache> make_rival(const std::string& name, const Trace& trace, std::size_t capacity);

/// Serve a whole trace.
HitRates replay(const std::string& name, Cache& cache, const Trace& trace, std::size_t block);

}  // namespace examples
