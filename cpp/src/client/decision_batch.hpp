/// Decides for many episodes at once: one run of the policy with a row for each.
#pragma once

#include <vector>

#include "client/batch_rows.hpp"

namespace rl4sys::client {

/// One decision for each of several episodes, with the bits of single decisions.
class DecisionBatch {
public:
    DecisionBatch(const SharedState& shared, std::vector<BatchRow> rows) : rows_(shared, std::move(rows)) {}

    /// The actions, in the order of the rows.
    std::vector<Action> decide();

private:
    /// Decide for rows that have the same snapshot.
    void decide(const std::vector<std::size_t>& indices);

    BatchRows rows_;
};

}  // namespace rl4sys::client
