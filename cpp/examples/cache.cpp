// A cache that learns what to evict. Four caches of the same size serve the same generated trace: one evicts the item
// that was used least recently, one the item used least often, one a random item, and one the item that a policy
// chooses, which learns meanwhile. The trace follows Zipf's law, and popularity drifts.
//
// On a miss in a full cache the policy observes a few randomly sampled items (as Redis does) and chooses the one
// to evict. The reward of a decision is -1 if its victim is requested again within
// the next `reward_window` evictions, that is, for the hit that it cost, and 0 otherwise.
#include <algorithm>
#include <array>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <exception>
#include <functional>
#include <random>
#include <utility>
#include <vector>

#include "latencies.hpp"
#include "options.hpp"
#include "pace.hpp"
#include "rl4sys/agent.hpp"
#include "rl4sys/log.hpp"

namespace {

using Random = std::mt19937_64;

constexpr std::size_t keys = 20'000;
constexpr std::size_t capacity = 500;
constexpr double skew = 0.9;
/// Requests between two changes of popularity.
constexpr std::uint64_t drift = 5'000;
constexpr std::size_t candidates = 8;

volatile std::sig_atomic_t interrupted = 0;

struct Item {
    std::size_t key = 0;
    /// Request numbers of its insertion and its last use; uses since its insertion.
    std::uint64_t since = 0;
    std::uint64_t used = 0;
    std::uint64_t uses = 0;
};

/// Requests keys: that of rank r with a probability proportional to 1 / r^skew. From time to time two keys swap their
/// ranks.
class Trace {
public:
    explicit Trace(std::uint64_t seed) : random_(seed), key_of_(keys), sums_(keys) {
        double sum = 0.0;
        for (std::size_t rank = 0; rank < keys; ++rank) {
            key_of_[rank] = rank;
            sums_[rank] = sum += 1.0 / std::pow(static_cast<double>(rank + 1), skew);
        }
    }

    std::size_t next() {
        if (++requests_ % drift == 0) {
            // A popular key and any other.
            std::swap(key_of_[random_() % capacity], key_of_[random_() % keys]);
        }
        const double point = std::uniform_real_distribution<double>(0.0, sums_.back())(random_);
        return key_of_[static_cast<std::size_t>(std::upper_bound(sums_.begin(), sums_.end() - 1, point) -
                                                sums_.begin())];
    }

private:
    Random random_;
    std::vector<std::size_t> key_of_;
    std::vector<double> sums_;
    std::uint64_t requests_ = 0;
};

/// Chooses the item to evict, from all items and the present time.
using Evict = std::function<std::size_t(const std::vector<Item>& items, std::uint64_t now)>;

class Cache {
public:
    Cache(const char* called, Evict evict) : name(called), evict_(std::move(evict)), place_of_(keys, absent) {
        items_.reserve(capacity);
    }

    /// Request a key, which is then in the cache; returns whether it was a hit.
    bool request(std::size_t key, std::uint64_t now) {
        if (const std::size_t place = place_of_[key]; place != absent) {
            items_[place].used = now;
            ++items_[place].uses;
            ++hits;
            return true;
        }
        std::size_t place = items_.size();
        if (place < capacity) {
            items_.emplace_back();
        } else {
            place = evict_(items_, now);
            place_of_[items_[place].key] = absent;
        }
        items_[place] = {key, now, now, 1};
        place_of_[key] = place;
        return false;
    }

    const char* name;
    /// Hits since the last printed line.
    std::uint64_t hits = 0;

private:
    static constexpr std::size_t absent = keys;

    Evict evict_;
    std::vector<Item> items_;
    std::vector<std::size_t> place_of_;
};

std::size_t least_recent(const std::vector<Item>& items, std::uint64_t) {
    const auto older = [](const Item& a, const Item& b) { return a.used < b.used; };
    return static_cast<std::size_t>(std::min_element(items.begin(), items.end(), older) - items.begin());
}

std::size_t least_frequent(const std::vector<Item>& items, std::uint64_t) {
    const auto rarer = [](const Item& a, const Item& b) {
        return a.uses != b.uses ? a.uses < b.uses : a.used < b.used;
    };
    return static_cast<std::size_t>(std::min_element(items.begin(), items.end(), rarer) - items.begin());
}

/// Evicts the item that the policy chooses, and rewards the policy.
class Eviction {
public:
    explicit Eviction(rl4sys::Agent& agent)
        : episode_(agent.episode()),
          window_(static_cast<std::int64_t>(agent.settings().reward_window.decisions)),
          evicted_by_(keys, -1) {}

    std::size_t evict(const std::vector<Item>& items, std::uint64_t now) {
        std::array<std::size_t, candidates> places;
        std::array<float, 3 * candidates> seen;
        for (std::size_t number = 0; number < candidates; ++number) {
            places[number] = random_() % items.size();
            const Item& item = items[places[number]];
            seen[3 * number] = scaled(now - item.used);
            seen[3 * number + 1] = scaled(now - item.since);
            seen[3 * number + 2] = scaled(item.uses);
        }
        const rl4sys::Action action = latencies.time([&] { return episode_.act(seen); });
        // Even without an action the cache must evict something.
        const std::size_t victim = places[action ? static_cast<std::size_t>(action.choice()) : 0];
        evicted_by_[items[victim].key] = action.decision();
        return victim;
    }

    /// Note a miss of this key.
    void missed(std::size_t key) {
        const std::int64_t decision = std::exchange(evicted_by_[key], -1);
        if (decision >= 0 && episode_.decision() - decision < window_) {
            episode_.reward(-1.0, decision);
        }
    }

    examples::Latencies latencies;

private:
    /// Maps counts from one to millions to numbers around 1.
    static float scaled(std::uint64_t count) {
        return static_cast<float>(std::log2(1.0 + static_cast<double>(count)) / 5.0 - 1.0);
    }

    rl4sys::Episode episode_;
    std::int64_t window_;
    /// The decision that evicted each key; -1 if there is none.
    std::vector<std::int64_t> evicted_by_;
    Random random_{1};
};

void serve(rl4sys::Agent& agent, std::uint64_t steps, double rate, std::uint64_t seed) {
    Trace trace(seed);
    Random random(2);
    Eviction eviction(agent);
    const auto any = [&](const std::vector<Item>& items, std::uint64_t) { return random() % items.size(); };
    const auto learned = [&](const std::vector<Item>& items, std::uint64_t now) { return eviction.evict(items, now); };
    std::array<Cache, 4> caches{Cache{"LRU", least_recent}, Cache{"LFU", least_frequent}, Cache{"random", any},
                                Cache{"learned", learned}};
    const std::uint64_t block = std::max<std::uint64_t>(1, steps / 20);
    std::printf("%12s %9s %9s %9s %9s %9s\n", "requests", "LRU", "LFU", "random", "learned", "version");
    std::array<double, 4> last{};
    examples::Pace pace(rate);
    std::uint64_t served = 0;
    while (served < steps && interrupted == 0) {
        const std::size_t key = trace.next();
        ++served;
        for (Cache& cache : caches) {
            const bool hit = cache.request(key, served);
            if (!hit && &cache == &caches.back()) {
                eviction.missed(key);
            }
        }
        if (served % 64 == 0) {
            pace.wait(64);
        }
        if (served % block == 0) {
            std::printf("%12llu", static_cast<unsigned long long>(served));
            for (std::size_t number = 0; number < caches.size(); ++number) {
                last[number] =
                    100.0 * static_cast<double>(std::exchange(caches[number].hits, 0)) / static_cast<double>(block);
                std::printf(" %8.2f%%", last[number]);
            }
            std::printf(" %9llu\n", static_cast<unsigned long long>(agent.health().version.value_or(0)));
            std::fflush(stdout);
        }
    }
    const double rival = std::max({last[0], last[1], last[2]});
    std::printf("At the end the learned cache hits %.2f%%, %s the best of the others (%.2f%%).\n", last[3],
                last[3] > rival ? "more than" : "no more than", rival);
    std::printf("act: median %.2f us, p99 %.2f us.\n", eviction.latencies.quantile(0.5),
                eviction.latencies.quantile(0.99));
}

void run(const examples::Options& options) {
    const auto steps = static_cast<std::uint64_t>(options.number("--steps", 1));
    const auto seed = static_cast<std::uint64_t>(options.number("--seed"));
    const double rate = options.number("--rate");
    rl4sys::ClientSettings settings = rl4sys::load_settings(options.text("--config"));
    settings.server = options.text("--server");
    rl4sys::Agent agent = rl4sys::connect(settings);
    std::signal(SIGINT, [](int) { interrupted = 1; });
    serve(agent, steps, rate, seed);
    const bool sent = agent.flush(30.0);
    const rl4sys::Health health = agent.health();
    std::printf("%llu segments are safe on the server%s; version %llu.\n",
                static_cast<unsigned long long>(health.acknowledged), sent ? "" : ", some still wait",
                static_cast<unsigned long long>(health.version.value_or(0)));
}

}  // namespace

int main(int count, char** words) {
    rl4sys::log_to(rl4sys::standard_error(), rl4sys::LogLevel::Warning);
    try {
        run({count,
             words,
             {{"--config", RL4SYS_EXAMPLES "/cache.json"},
              {"--server", "127.0.0.1:50051"},
              {"--steps", "2000000"},
              {"--rate", "20000"},
              {"--seed", "0"}}});
        return 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
