#include "client/batch_rows.hpp"

#include <algorithm>
#include <utility>

namespace rl4sys::client {

BatchRows::BatchRows(const SharedState& shared, std::vector<BatchRow> rows)
    : shared_(shared), rows_(std::move(rows)), began_(shared.clock()), actions_(rows_.size()), before_(rows_.size()) {}

std::vector<std::size_t> BatchRows::observe() {
    lock_lanes();
    std::vector<std::size_t> undecided;
    undecided.reserve(rows_.size());
    for (std::size_t row = 0; row < rows_.size(); ++row) {
        const BatchRow& each = rows_[row];
        before_[row] = each.lane->episode_decisions();
        actions_[row] = each.lane->observe_for_batch(each.episode, *each.observation, each.mask, each.now);
        if (!actions_[row]) {
            undecided.push_back(row);
        }
    }
    return undecided;
}

std::vector<Action> BatchRows::finish() {
    std::vector<SegmentBufferList> sealed(rows_.size());
    for (std::size_t row = 0; row < rows_.size(); ++row) {
        if (rows_[row].now && *actions_[row]) {
            rows_[row].lane->decided_at(*rows_[row].now);
        }
        rows_[row].lane->seal_due(before_[row], sealed[row]);
    }
    // Outside the locks: with `overflow: block` posting may wait, and rewards must not.
    locks_.clear();
    for (std::size_t row = 0; row < rows_.size(); ++row) {
        rows_[row].lane->post(sealed[row], rows_[row].episode);
    }
    const double took = (shared_.clock() - began_) / static_cast<double>(rows_.size());
    shared_.times.add_batch(static_cast<std::uint64_t>(1e9 * std::max(0.0, took)), rows_.size());
    std::vector<Action> actions;
    actions.reserve(actions_.size());
    for (std::optional<Action>& action : actions_) {
        actions.push_back(std::move(*action));
    }
    return actions;
}

void BatchRows::lock_lanes() {
    std::vector<Lane*> lanes;
    lanes.reserve(rows_.size());
    for (const BatchRow& row : rows_) {
        lanes.push_back(row.lane);
    }
    // Always in the same order, so that two threads never wait for each other.
    std::sort(lanes.begin(), lanes.end(),
              [](const Lane* one, const Lane* other) { return one->index() < other->index(); });
    locks_.reserve(lanes.size());
    for (Lane* lane : lanes) {
        locks_.push_back(lane->lock());
    }
}

}  // namespace rl4sys::client
