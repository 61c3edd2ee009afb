/// Decides for many episodes at once on the server: one question with a row for each.
#pragma once

#include <vector>

#include "client/batch_rows.hpp"

namespace rl4sys::client {

/// One decision for each of several episodes, within one deadline.
class ServerDecisionBatch {
public:
    ServerDecisionBatch(const SharedState& shared, std::vector<BatchRow> rows);

    /// The actions, in the order of the rows.
    std::vector<Action> decide();

private:
    /// Ask about some of the rows, one by one if the policy cannot decide on all of them.
    void ask(const std::vector<std::size_t>& indices);

    const SharedState& shared_;
    BatchRows rows_;
    double deadline_;
};

}  // namespace rl4sys::client
