/// @file
/// Who decides which of a few pages leaves the learned cache.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "page_history.hpp"

namespace examples {

/// Pages that are sampled for each decision.
constexpr std::size_t candidate_count = 16;
/// One row for each candidate.
using Candidates = std::array<PageFeatures, candidate_count>;

/// One of the candidates, and the id of the decision; -1 if there was no decision to learn from.
struct Victim {
    std::size_t candidate = 0;
    std::int64_t decision = -1;
};

class VictimChooser {
public:
    VictimChooser() = default;
    VictimChooser(const VictimChooser&) = delete;
    VictimChooser& operator=(const VictimChooser&) = delete;
    virtual ~VictimChooser() = default;

    virtual Victim choose(const Candidates& candidates) = 0;
    /// The victim of this decision was requested again too soon.
    virtual void regret(std::int64_t decision) = 0;
};

}  // namespace examples
