/// The replies of Act: what the server decided for each row.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "wire/calls.hpp"

namespace rl4sys::wire {

/// What was decided for one row.
struct DecidedRow {
    std::vector<std::int64_t> choices;  ///< Counted from 0; empty for box and mixed actions.
    std::vector<float> numbers;         ///< Empty for discrete actions; those of a mixed one begin with its choices.
    std::vector<std::string> extras;    ///< The bytes of each array.
    std::vector<float> carry;           ///< The memory afterwards, one array after the other.
};

/// The decisions of a reply for so many rows. @throws ContractViolation where it does not follow the format.
std::vector<DecidedRow> decode_decisions(const SegmentFormat& form, const ActReply& reply, std::size_t rows);

}  // namespace rl4sys::wire
