#include <algorithm>
#include <cmath>
#include <random>
#include <utility>

#include "page_numbers.hpp"
#include "trace.hpp"

namespace examples {
namespace {

/// Keys by Zipf's law. Chance comes from the bits of the generator alone, so every platform has the same trace.
class ZipfKeys {
public:
    explicit ZipfKeys(const GeneratedTraceSpec& spec) : spec_(spec), random_(spec.seed) {
        double sum = 0.0;
        for (std::size_t rank = 0; rank < spec.keys; ++rank) {
            key_of_.push_back(rank);
            sums_.push_back(sum += std::pow(static_cast<double>(rank + 1), -spec.skew));
        }
    }

    std::uint64_t next() {
        const double point = static_cast<double>(random_() >> 11) * 0x1p-53 * sums_.back();
        const auto found = std::upper_bound(sums_.begin(), sums_.end() - 1, point);
        return key_of_[static_cast<std::size_t>(found - sums_.begin())];
    }

    /// One of the most popular 5 % of all keys and any other swap their ranks.
    void drift() {
        const std::size_t popular = std::max<std::size_t>(1, spec_.keys / 20);
        std::swap(key_of_[random_() % popular], key_of_[random_() % spec_.keys]);
    }

private:
    GeneratedTraceSpec spec_;
    std::mt19937_64 random_;
    std::vector<std::uint64_t> key_of_;
    std::vector<double> sums_;
};

}  // namespace

Trace generate_trace(const GeneratedTraceSpec& spec) {
    Trace trace{"generated", {}, 0};
    ZipfKeys keys(spec);
    PageNumbers numbers;
    std::uint64_t scanned = spec.keys;
    std::size_t scan_left = 0;
    for (std::size_t request = 1; request <= spec.requests; ++request) {
        // A scan shares the cache with the other requests: every second one is of the scan.
        const bool is_scan = scan_left > 0 && request % 2 == 0;
        trace.requests.push_back(numbers.of(is_scan ? scanned++ : keys.next()));
        if (is_scan) --scan_left;
        if (spec.drift > 0 && request % spec.drift == 0) keys.drift();
        if (spec.scan_every > 0 && request % spec.scan_every == 0) scan_left = spec.scan_length;
    }
    trace.page_count = numbers.count();
    return trace;
}

}  // namespace examples
