#include "rivals.hpp"

#include <stdexcept>

#include "arc_cache.hpp"
#include "belady_cache.hpp"
#include "lfu_cache.hpp"
#include "lru_cache.hpp"
#include "s3_fifo_cache.hpp"
#include "sieve_cache.hpp"

namespace examples {

const std::vector<std::string>& rival_names() {
    static const std::vector<std::string> names{"LRU", "LFU", "ARC", "SIEVE", "S3-FIFO", "Belady"};
    return names;
}

std::unique_ptr<Cache> make_rival(const std::string& name, const Trace& trace, std::size_t capacity) {
    if (name == "LRU") return std::make_unique<LruCache>(trace.page_count, capacity);
    if (name == "LFU") return std::make_unique<LfuCache>(trace.page_count, capacity);
    if (name == "ARC") return std::make_unique<ArcCache>(trace.page_count, capacity);
    if (name == "SIEVE") return std::make_unique<SieveCache>(trace.page_count, capacity);
    if (name == "S3-FIFO") return std::make_unique<S3FifoCache>(trace.page_count, capacity);
    if (name == "Belady") return std::make_unique<BeladyCache>(trace, capacity);
    throw std::invalid_argument("There is no cache '" + name + "'; expected LRU, LFU, ARC, SIEVE, S3-FIFO or Belady.");
}

HitRates replay(const std::string& name, Cache& cache, const Trace& trace, std::size_t block) {
    HitRates rates(name, trace.requests.size(), block);
    for (const Page page : trace.requests) {
        rates.count(cache.request(page));
    }
    return rates;
}

}  // namespace examples
