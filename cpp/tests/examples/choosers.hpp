/// @file
/// Choosers that do not learn, for tests.
#pragma once

#include <vector>

#include "cache/victim_chooser.hpp"

namespace examples {

/// Chooses the candidate with the largest feature times `sign`, and lists what was regretted.
class FeatureChooser : public VictimChooser {
public:
    FeatureChooser(std::size_t feature, float sign) : feature_(feature), sign_(sign) { regretted.reserve(1 << 20); }

    Victim choose(const Candidates& candidates) override {
        std::size_t best = 0;
        for (std::size_t each = 1; each < candidates.size(); ++each) {
            if (sign_ * candidates[each][feature_] > sign_ * candidates[best][feature_]) best = each;
        }
        return {best, ++decisions};
    }

    void regret(std::int64_t decision) override { regretted.push_back(decision); }

    std::int64_t decisions = 0;
    std::vector<std::int64_t> regretted;

private:
    std::size_t feature_;
    float sign_;
};

}  // namespace examples
