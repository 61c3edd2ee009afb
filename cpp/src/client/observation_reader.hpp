/// Copies observations into rows of a segment buffer, converted to the types of the policy.
#pragma once

#include <string>
#include <vector>

#include "client/segment_buffer.hpp"
#include "rl4sys/observation.hpp"

namespace rl4sys::client {

/// Copies an observation into one row of each array that a policy observes.
class ObservationReader {
public:
    ObservationReader() = default;
    explicit ObservationReader(const std::vector<ArraySpec>& specs);

    /// Copy into row `row`; without a mask every action is allowed. Returns what is wrong, or an empty string.
    std::string write(const SegmentBuffer& buffer, std::size_t row, const Observation& observation,
                      ArrayView mask) const;

private:
    struct Seen {
        std::size_t place = 0;
        ArraySpec spec;
        std::size_t values = 0;
    };

    std::string write_named(const SegmentBuffer& buffer, std::size_t row, const Observation& observation,
                            ArrayView& mask) const;
    std::string write_mask(const SegmentBuffer& buffer, std::size_t row, ArrayView mask) const;
    std::string expected() const;

    std::vector<Seen> seen_;
    std::vector<Seen> mask_;  ///< One at most.
};

}  // namespace rl4sys::client
