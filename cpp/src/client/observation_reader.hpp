/// Puts what a system observes into rows of columns, converted to what the policy sees.
#pragma once

#include <string>
#include <vector>

#include "client/segment_buffer.hpp"
#include "rl4sys/observation.hpp"

namespace rl4sys::client {

/// Knows which arrays a policy sees, and copies one observation into a row of each.
class ObservationReader {
public:
    ObservationReader() = default;
    explicit ObservationReader(const std::vector<ArraySpec>& specs);

    /// Copy into row `row`; a mask that is absent allows everything. Returns what is wrong, or nothing.
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
