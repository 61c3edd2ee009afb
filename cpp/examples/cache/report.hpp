/// @file
/// What the program prints: a table that grows with the trace, or JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hit_rates.hpp"

namespace examples {

/// About the learned cache, beside its hit rates.
struct LearnedReport {
    std::uint64_t version = 0;
    std::uint64_t evictions = 0;
    std::uint64_t guarded_evictions = 0;
    std::uint64_t guard_activations = 0;
    /// Of `act`, in microseconds.
    double act_median = 0.0;
    double act_p99 = 0.0;
};

struct CacheReport {
    std::string trace;
    std::size_t requests = 0;
    std::size_t pages = 0;
    std::size_t capacity = 0;
    std::size_t block = 0;
    std::vector<HitRates> rates;
    /// Absent if only rivals were compared.
    std::optional<LearnedReport> learned;
};

std::string table_header(const std::vector<HitRates>& rates);
/// The hit rates of block `number`, after its last request.
std::string table_row(const std::vector<HitRates>& rates, std::size_t number, std::size_t requests);
/// The hit rates of the second half and of all requests, and what is to be said about the learned cache.
std::string table_end(const CacheReport& report);
std::string report_json(const CacheReport& report);

}  // namespace examples
