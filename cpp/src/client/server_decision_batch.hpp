/// Decides for many episodes at once on the server: one question with a row for each.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "client/lane.hpp"

namespace rl4sys::client {

/// An episode that is to decide, by its lane.
struct BatchRow {
    Lane* lane = nullptr;
    std::uint64_t episode = 0;
    const Observation* observation = nullptr;
    ArrayView mask;
    std::optional<double> now;
};

/// One decision for each of several episodes, whose lanes are locked meanwhile, within one deadline.
class ServerDecisionBatch {
public:
    /// The episodes must be different ones.
    ServerDecisionBatch(const SharedState& shared, std::vector<BatchRow> rows);

    /// The actions, in the order of the rows.
    std::vector<Action> decide();

private:
    void lock_lanes();
    void observe();
    /// Ask about some of the rows, one by one if the policy cannot decide on all of them.
    void ask(const std::vector<std::size_t>& indices);
    void post();

    const SharedState& shared_;
    std::vector<BatchRow> rows_;
    double deadline_;
    std::vector<std::optional<Action>> actions_;
    std::vector<std::int64_t> before_;  ///< Decisions of each episode before this one.
    std::vector<std::unique_lock<std::mutex>> locks_;
};

}  // namespace rl4sys::client
