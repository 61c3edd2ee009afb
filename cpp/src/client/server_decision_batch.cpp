#include "client/server_decision_batch.hpp"

#include <algorithm>
#include <utility>

namespace rl4sys::client {

ServerDecisionBatch::ServerDecisionBatch(const SharedState& shared, std::vector<BatchRow> rows)
    : shared_(shared), rows_(shared, std::move(rows)), deadline_(shared.clock() + shared.server_policy.timeout()) {}

std::vector<Action> ServerDecisionBatch::decide() {
    const std::vector<std::size_t> waiting = rows_.observe();
    const std::size_t most = shared_.server_policy.most_rows();
    for (std::size_t first = 0; first < waiting.size(); first += most) {
        const auto begin = waiting.begin() + static_cast<std::ptrdiff_t>(first);
        ask({begin, begin + static_cast<std::ptrdiff_t>(std::min(most, waiting.size() - first))});
    }
    return rows_.finish();
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
        rows_.decided(indices[row], each.lane->take_answer(decision, row, *each.observation, each.mask));
    }
}

}  // namespace rl4sys::client
