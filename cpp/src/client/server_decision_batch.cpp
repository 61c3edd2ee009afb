#include "client/server_decision_batch.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace rl4sys::client {

ServerDecisionBatch::ServerDecisionBatch(const SharedState& shared, std::vector<BatchRow> rows)
    : shared_(shared),
      rows_(std::move(rows)),
      deadline_(shared.clock() + shared.server_policy.timeout()),
      actions_(rows_.size()),
      before_(rows_.size()) {}

std::vector<Action> ServerDecisionBatch::decide() {
    const double began = shared_.clock();
    lock_lanes();
    observe();
    std::vector<std::size_t> waiting;
    for (std::size_t row = 0; row < rows_.size(); ++row) {
        if (!actions_[row]) {
            waiting.push_back(row);
        }
    }
    const std::size_t most = shared_.server_policy.most_rows();
    for (std::size_t first = 0; first < waiting.size(); first += most) {
        const auto begin = waiting.begin() + static_cast<std::ptrdiff_t>(first);
        ask({begin, begin + static_cast<std::ptrdiff_t>(std::min(most, waiting.size() - first))});
    }
    post();
    const double took = (shared_.clock() - began) / static_cast<double>(rows_.size());
    shared_.times.add_batch(static_cast<std::uint64_t>(1e9 * std::max(0.0, took)), rows_.size());
    std::vector<Action> actions;
    actions.reserve(actions_.size());
    for (std::optional<Action>& action : actions_) {
        actions.push_back(std::move(*action));
    }
    return actions;
}

void ServerDecisionBatch::lock_lanes() {
    std::vector<Lane*> lanes;
    lanes.reserve(rows_.size());
    for (const BatchRow& row : rows_) {
        lanes.push_back(row.lane);
    }
    // Always in the same order, so that two threads never wait for each other.
    std::sort(lanes.begin(), lanes.end(),
              [](const Lane* one, const Lane* other) { return one->index() < other->index(); });
    for (Lane* lane : lanes) {
        locks_.push_back(lane->lock());
    }
}

void ServerDecisionBatch::observe() {
    for (std::size_t row = 0; row < rows_.size(); ++row) {
        const BatchRow& each = rows_[row];
        before_[row] = each.lane->episode_decisions();
        actions_[row] = each.lane->observe_for_server(each.episode, *each.observation, each.mask, each.now);
    }
}

void ServerDecisionBatch::ask(const std::vector<std::size_t>& indices) {
    std::vector<AskedRow> asked;
    asked.reserve(indices.size());
    for (const std::size_t index : indices) {
        asked.push_back(rows_[index].lane->asked());
    }
    ServerDecision decision;
    if (const double left = deadline_ - shared_.clock(); left > 0.0) {
        decision = shared_.server_policy.decide(asked, left);
    }
    if (decision.answered == Answered::Impossible && indices.size() > 1) {
        for (const std::size_t index : indices) {
            ask({index});
        }
        return;
    }
    for (std::size_t row = 0; row < indices.size(); ++row) {
        const BatchRow& each = rows_[indices[row]];
        actions_[indices[row]] = each.lane->take_answer(decision, row, *each.observation, each.mask);
    }
}

void ServerDecisionBatch::post() {
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
}

}  // namespace rl4sys::client
