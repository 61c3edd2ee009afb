/// Copies observations into rows of a segment buffer, converted to the types of the policy.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rl4sys/observation.hpp"
#include "rl4sys/settings.hpp"

namespace rl4sys::client {

class SegmentBuffer;

/// The error of a choice that is not there.
std::string no_such_candidate(std::int64_t choice, std::size_t count);

/// Copies an observation into one row of each array that a policy observes.
class ObservationReader {
public:
    ObservationReader() = default;
    /// `defaults`: what stands for arrays that an observation leaves out, and for features that are NaN.
    /// @throws SettingsError for one that does not fit its array.
    explicit ObservationReader(const std::vector<ArraySpec>& specs, const FeatureDefaults& defaults = {});

    /// What is wrong with an observation, or nothing, and whether a default was needed.
    struct Written {
        std::string problem;
        bool is_defaulted = false;
    };

    /// Copy into row `row`; without a mask every action is allowed.
    Written write(const SegmentBuffer& buffer, std::size_t row, const Observation& observation, ArrayView mask) const;

    /// What is wrong with choices for an observation, as it was passed: that one is not among its candidates. Empty
    /// where nothing is, or where the candidates cannot be counted.
    std::string absent(const Observation& observation, const std::vector<std::int64_t>& choices) const;

private:
    struct Seen {
        std::size_t place = 0;
        ArraySpec spec;
        std::size_t values = 0;
        std::size_t features = 0;         ///< Of each candidate; 0 if the array is not that of the candidates.
        std::vector<std::byte> defaults;  ///< A row with NaN where there is none; empty if there are no defaults.
    };

    Written write_named(const SegmentBuffer& buffer, std::size_t row, const Observation& observation,
                        ArrayView& mask) const;
    Written write_array(const Seen& seen, const SegmentBuffer& buffer, std::size_t row, const ArrayView& array) const;
    /// Copy the candidates that there are, zeros after them, and their number.
    Written write_candidates(const Seen& seen, const SegmentBuffer& buffer, std::size_t row,
                             const ArrayView& array) const;
    /// The number of candidates, if it is passed, too: the first ones of the rows count.
    std::string write_count(const SegmentBuffer& buffer, std::size_t row, const ArrayView& array) const;
    std::string write_mask(const SegmentBuffer& buffer, std::size_t row, ArrayView mask) const;
    std::string expected() const;

    std::vector<Seen> seen_;
    std::vector<Seen> mask_;   ///< One at most.
    std::vector<Seen> count_;  ///< That of the candidates, if the policy observes them.
};

}  // namespace rl4sys::client
