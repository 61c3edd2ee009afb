/// The episodes that decide together: their lanes are locked meanwhile.
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

/// One decision for each of several episodes, which must be different ones. What all batches have in common: locking,
/// observing and posting.
class BatchRows {
public:
    BatchRows(const SharedState& shared, std::vector<BatchRow> rows);

    const BatchRow& operator[](std::size_t row) const { return rows_[row]; }
    /// Lock the lanes and record the observations; returns the rows that the policy is to decide for.
    std::vector<std::size_t> observe();
    void decided(std::size_t row, Action action) { actions_[row] = std::move(action); }
    /// Unlock the lanes and post what is due; returns the actions in the order of the rows.
    std::vector<Action> finish();

private:
    void lock_lanes();

    const SharedState& shared_;
    std::vector<BatchRow> rows_;
    double began_;
    std::vector<std::optional<Action>> actions_;
    std::vector<std::int64_t> before_;  ///< Decisions of each episode before this one.
    std::vector<std::unique_lock<std::mutex>> locks_;
};

}  // namespace rl4sys::client
