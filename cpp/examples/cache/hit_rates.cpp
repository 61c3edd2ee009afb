#include "hit_rates.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace examples {
namespace {

double percent(std::uint64_t hits, std::size_t requests) {
    return requests == 0 ? 0.0 : 100.0 * static_cast<double>(hits) / static_cast<double>(requests);
}

}  // namespace

HitRates::HitRates(std::string cache_name, std::size_t requests, std::size_t block)
    : name_(std::move(cache_name)), requests_(requests), block_(block) {
    blocks_.reserve(requests / block + 1);
}

double HitRates::block(std::size_t number) const {
    return percent(blocks_.at(number), std::min(block_, counted_ - number * block_));
}

double HitRates::second_half() const {
    return percent(later_, counted_ - std::min(counted_, requests_ / 2));
}

double HitRates::all() const {
    return percent(std::accumulate(blocks_.begin(), blocks_.end(), std::uint64_t{0}), counted_);
}

}  // namespace examples
