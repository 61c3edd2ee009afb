#include "learned_cache.hpp"

#include <utility>

namespace examples {

LearnedCache::LearnedCache(std::size_t page_count, std::size_t capacity, VictimChooser& chooser, std::uint64_t seed)
    : chooser_(chooser),
      capacity_(capacity),
      random_(seed),
      history_(page_count, capacity),
      guard_(page_count, capacity),
      recency_(page_count),
      place_of_(page_count),
      eviction_of_(page_count) {
    pages_.reserve(capacity);
}

bool LearnedCache::request(Page page) {
    ++now_;
    const bool hit = recency_.has(page);
    guard_.note(page, hit);
    if (hit) {
        recency_.make_newest(page);
        history_.hit(page, now_);
        return true;
    }
    returned(page);
    std::size_t place = pages_.size();
    if (place < capacity_) {
        pages_.push_back(page);
    } else {
        place = evict();
        pages_[place] = page;
    }
    place_of_[page] = place;
    recency_.push_newest(page);
    history_.insert(page, now_);
    return false;
}

std::size_t LearnedCache::evict() {
    const std::size_t place = guard_.is_active() ? place_of_[recency_.oldest()] : choose();
    guarded_evictions_ += guard_.is_active() ? 1 : 0;
    ++evictions_;
    recency_.remove(pages_[place]);
    return place;
}

std::size_t LearnedCache::choose() {
    std::array<std::size_t, candidate_count> places;
    Candidates candidates;
    for (std::size_t candidate = 0; candidate < candidate_count; ++candidate) {
        places[candidate] = random_() % capacity_;
        candidates[candidate] = history_.features(pages_[places[candidate]], now_);
    }
    const Victim victim = chooser_.choose(candidates);
    const std::size_t place = places[victim.candidate];
    eviction_of_[pages_[place]] = {victim.decision, evictions_};
    return place;
}

void LearnedCache::returned(Page page) {
    const Eviction eviction = std::exchange(eviction_of_[page], {});
    if (eviction.decision >= 0 && evictions_ - eviction.number < 2 * capacity_) {
        chooser_.regret(eviction.decision);
    }
}

}  // namespace examples
