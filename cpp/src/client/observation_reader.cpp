#include "client/observation_reader.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "client/feature_defaults.hpp"
#include "client/segment_buffer.hpp"

namespace rl4sys::client {
namespace {

/// The result of copying an array.
enum class Copied { Fully, OtherType, OutOfRange, NotFinite };

template <typename Number>
Number value_at(const void* data, std::size_t index) {
    Number value;
    std::memcpy(&value, static_cast<const std::byte*>(data) + index * sizeof value, sizeof value);
    return value;
}

/// Call with a value of the C++ type for an element type; false for float16, which C++ lacks.
template <typename Work>
bool with_type(ElementType type, const Work& work) {
    switch (type) {
        case ElementType::Bool: work(bool{}); return true;
        case ElementType::UInt8: work(std::uint8_t{}); return true;
        case ElementType::UInt16: work(std::uint16_t{}); return true;
        case ElementType::UInt32: work(std::uint32_t{}); return true;
        case ElementType::UInt64: work(std::uint64_t{}); return true;
        case ElementType::Int8: work(std::int8_t{}); return true;
        case ElementType::Int16: work(std::int16_t{}); return true;
        case ElementType::Int32: work(std::int32_t{}); return true;
        case ElementType::Int64: work(std::int64_t{}); return true;
        case ElementType::Float32: work(float{}); return true;
        case ElementType::Float64: work(double{}); return true;
        case ElementType::Float16: break;
    }
    return false;
}

template <typename Float>
Copied require_finite(const std::byte* row, std::size_t count) {
    for (std::size_t index = 0; index < count; ++index) {
        if (!std::isfinite(value_at<Float>(row, index))) {
            return Copied::NotFinite;
        }
    }
    return Copied::Fully;
}

/// Whether a type converts to another: to a wider type of the same kind, or from integer to float; never from float to
/// integer.
template <typename To, typename From>
Copied convert(std::byte* row, const void* data, std::size_t count) {
    constexpr bool to_real = std::is_floating_point_v<To>;
    if constexpr (std::is_same_v<To, bool> || (std::is_floating_point_v<From> && !to_real)) {
        return Copied::OtherType;
    } else {
        for (std::size_t index = 0; index < count; ++index) {
            const From value = value_at<From>(data, index);
            const To converted = static_cast<To>(value);
            if constexpr (!to_real) {
                const bool changes_sign = (value < From{}) != (converted < To{});
                if (changes_sign || static_cast<From>(converted) != value) {
                    return Copied::OutOfRange;
                }
            }
            std::memcpy(row + index * sizeof converted, &converted, sizeof converted);
        }
        return Copied::Fully;
    }
}

Copied copy(const ArraySpec& spec, std::size_t count, std::byte* row, const ArrayView& array) {
    Copied result = Copied::OtherType;
    if (array.type() == spec.type) {
        std::memcpy(row, array.data(), count * element_size(spec.type));
        result = Copied::Fully;
    } else {
        with_type(array.type(), [&](auto from) {
            with_type(spec.type,
                      [&](auto to) { result = convert<decltype(to), decltype(from)>(row, array.data(), count); });
        });
    }
    if (result == Copied::Fully && spec.type == ElementType::Float32) {
        return require_finite<float>(row, count);
    }
    if (result == Copied::Fully && spec.type == ElementType::Float64) {
        return require_finite<double>(row, count);
    }
    return result;
}

std::string explain(const ArraySpec& spec, const ArrayView& array, Copied result) {
    switch (result) {
        case Copied::Fully: return "";
        case Copied::NotFinite:
            return "'" + spec.name +
                   "' contains NaN or infinity; leave such values out or replace them, or name values for NaN in "
                   "`defaults`.";
        default:
            return "Got '" + spec.name + "' as " + std::string(element_name(array.type())) +
                   ", which does not fit into " + to_string(spec) + ".";
    }
}

/// Replace NaN by the default of each feature; true if all values are finite then.
template <typename Float>
bool settle(std::byte* row, const std::vector<std::byte>& defaults) {
    const std::size_t count = defaults.size() / sizeof(Float);
    for (std::size_t index = 0; index < count; ++index) {
        if (std::isnan(value_at<Float>(row, index))) {
            std::memcpy(row + index * sizeof(Float), defaults.data() + index * sizeof(Float), sizeof(Float));
        }
    }
    return count > 0 && require_finite<Float>(row, count) == Copied::Fully;
}

/// A default in the type of its array.
std::vector<std::byte> row_of(const ArraySpec& spec, const std::vector<double>& values) {
    const std::vector<double> numbers = default_row(spec, values);
    std::vector<std::byte> row(spec.bytes());
    with_type(spec.type, [&](auto kind) {
        for (std::size_t index = 0; index < numbers.size(); ++index) {
            const auto value = static_cast<decltype(kind)>(numbers[index]);
            std::memcpy(row.data() + index * sizeof value, &value, sizeof value);
        }
    });
    return row;
}

std::string wrong_size(const ArraySpec& spec, std::size_t got) {
    return "Got '" + spec.name + "' of " + std::to_string(got) + " values; this policy observes " + to_string(spec) +
           ". Pass as many, or change `observation` in the config and choose another policy_id.";
}

}  // namespace

std::string no_such_candidate(std::int64_t choice, std::size_t count) {
    return "Got choice " + std::to_string(choice) + " of " + std::to_string(count) + " candidates; the first is 0.";
}

ObservationReader::ObservationReader(const std::vector<ArraySpec>& specs, const FeatureDefaults& defaults) {
    for (std::size_t place = 0; place < specs.size(); ++place) {
        const ArraySpec& spec = specs[place];
        Seen seen{place, spec, spec.values(), 0, {}};
        if (const auto found = defaults.find(spec.name); found != defaults.end()) {
            seen.defaults = row_of(spec, found->second);
        }
        (spec.name == mask_name              ? mask_
         : spec.name == candidate_count_name ? count_
                                             : seen_)
            .push_back(std::move(seen));
    }
    const auto rows = std::find_if(seen_.begin(), seen_.end(), [](const Seen& seen) {
        return seen.spec.name == candidates_name && seen.spec.type == ElementType::Float32 &&
               seen.spec.shape.size() == 2 && seen.values > 0;
    });
    if (rows != seen_.end() && !count_.empty()) {
        rows->features = rows->spec.shape[1];
    } else if (!count_.empty()) {
        // A number like any other.
        seen_.push_back(std::move(count_.front()));
        count_.clear();
    }
}

ObservationReader::Written ObservationReader::write(const SegmentBuffer& buffer, std::size_t row,
                                                    const Observation& observation, ArrayView mask) const {
    if (!observation.is_named() && seen_.size() != 1) {
        return {"Got one array; this policy observes " + expected() + ". Pass them by name."};
    }
    Written written = observation.is_named() ? write_named(buffer, row, observation, mask)
                                             : write_array(seen_.front(), buffer, row, observation[0].array);
    if (written.problem.empty() && (mask.given() || !mask_.empty())) {
        written.problem = write_mask(buffer, row, mask);
    }
    return written;
}

ObservationReader::Written ObservationReader::write_named(const SegmentBuffer& buffer, std::size_t row,
                                                          const Observation& observation, ArrayView& mask) const {
    // An empty array of candidates may have no address.
    const auto is_passed = [&](const NamedArray& one) {
        return one.array.given() || (!count_.empty() && one.name == candidates_name);
    };
    std::size_t arrays = 0;
    const NamedArray* counted = nullptr;
    for (const NamedArray& given : observation) {
        if (!count_.empty() && given.name == candidate_count_name) {
            counted = &given;
        } else if (given.name != mask_name) {
            arrays += is_passed(given) ? 1 : 0;
        } else if (mask.given()) {
            return {"Got a mask twice: as an argument and as '" + std::string(mask_name) + "'. Keep one."};
        } else {
            mask = given.array;
        }
    }
    Written written;
    std::size_t read = 0;
    for (const Seen& seen : seen_) {
        const NamedArray* found = nullptr;
        for (const NamedArray& given : observation) {
            found = given.name == seen.spec.name && is_passed(given) ? &given : found;
        }
        read += found == nullptr ? 0 : 1;
        if (found == nullptr && seen.defaults.empty()) {
            return {"Got no '" + seen.spec.name + "'; this policy observes " + expected() +
                    ". Add what is missing, or name a value for it in `defaults`."};
        }
        const ArrayView otherwise(seen.defaults.data(), seen.values, seen.spec.type);
        const Written one = write_array(seen, buffer, row, found == nullptr ? otherwise : found->array);
        if (!one.problem.empty()) {
            return one;
        }
        written.is_defaulted = written.is_defaulted || one.is_defaulted || found == nullptr;
    }
    if (read != arrays) {
        return {"Got " + std::to_string(arrays) + " arrays; this policy observes " + expected() +
                ". Pass each once, by its name."};
    }
    if (counted != nullptr && counted->array.given()) {
        written.problem = write_count(buffer, row, counted->array);
    }
    return written;
}

ObservationReader::Written ObservationReader::write_candidates(const Seen& seen, const SegmentBuffer& buffer,
                                                               std::size_t row, const ArrayView& array) const {
    const std::size_t most = seen.spec.shape[0], count = array.size() / seen.features;
    if (array.size() % seen.features != 0) {
        return {"Got '" + seen.spec.name + "' of " + std::to_string(array.size()) + " values; expected up to " +
                std::to_string(most) + " rows of " + std::to_string(seen.features) +
                " features. Pass whole rows, or change `candidates` in the config and choose another policy_id."};
    }
    if (count > most) {
        return {"Got " + std::to_string(count) + " candidates; this policy chooses among " + std::to_string(most) +
                " at most. Pass fewer, or raise `candidates` in the config and choose another policy_id."};
    }
    std::byte* target = buffer.row(seen.place, row);
    const Copied result = array.size() == 0 ? Copied::Fully : copy(seen.spec, array.size(), target, array);
    if (result != Copied::Fully) {
        return {result == Copied::NotFinite ? "'" + seen.spec.name +
                                                  "' contains NaN or infinity; leave such candidates out, or replace "
                                                  "the values."
                                            : explain(seen.spec, array, result)};
    }
    std::memset(target + array.size() * sizeof(float), 0, (seen.values - array.size()) * sizeof(float));
    const auto number = static_cast<float>(count);
    std::memcpy(buffer.row(count_.front().place, row), &number, sizeof number);
    return {};
}

ObservationReader::Written ObservationReader::write_array(const Seen& seen, const SegmentBuffer& buffer, std::size_t at,
                                                          const ArrayView& array) const {
    if (seen.features > 0) {
        return write_candidates(seen, buffer, at, array);
    }
    std::byte* row = buffer.row(seen.place, at);
    if (array.size() != seen.values) {
        return {wrong_size(seen.spec, array.size())};
    }
    const Copied result = copy(seen.spec, seen.values, row, array);
    if (result == Copied::Fully) {
        return {};
    }
    if (result == Copied::NotFinite && (seen.spec.type == ElementType::Float32 ? settle<float>(row, seen.defaults)
                                                                               : settle<double>(row, seen.defaults))) {
        return {"", true};
    }
    return {explain(seen.spec, array, result)};
}

std::string ObservationReader::write_count(const SegmentBuffer& buffer, std::size_t row, const ArrayView& array) const {
    std::byte* place = buffer.row(count_.front().place, row);
    const auto rows = value_at<float>(place, 0);
    if (array.size() != 1 || copy(count_.front().spec, 1, place, array) != Copied::Fully) {
        return "Got a 'candidate_count' that is not one number; leave it out, or pass how many of the rows count.";
    }
    const auto count = value_at<float>(place, 0);
    if (!(count >= 0.0F && count <= rows) || count != std::trunc(count)) {
        return "Got a 'candidate_count' of " + std::to_string(count) + " with " +
               std::to_string(static_cast<std::size_t>(rows)) + " rows; pass how many of them count.";
    }
    for (const Seen& seen : seen_) {
        if (seen.features == 0) continue;
        const std::size_t kept = static_cast<std::size_t>(count) * seen.features;
        std::memset(buffer.row(seen.place, row) + kept * sizeof(float), 0, (seen.values - kept) * sizeof(float));
    }
    return "";
}

std::string ObservationReader::absent(const Observation& observation, const std::vector<std::int64_t>& choices) const {
    const auto rows = std::find_if(seen_.begin(), seen_.end(), [](const Seen& seen) { return seen.features > 0; });
    if (rows == seen_.end() || choices.empty()) {
        return "";
    }
    std::size_t there = 0;
    for (const NamedArray& given : observation) {
        if (!observation.is_named() || given.name == candidates_name) {
            there = given.array.size() / rows->features;
        }
    }
    for (const NamedArray& given : observation) {
        float count = 0.0F;
        if (given.name == candidate_count_name && given.array.size() == 1 &&
            copy(count_.front().spec, 1, reinterpret_cast<std::byte*>(&count), given.array) == Copied::Fully) {
            there = static_cast<std::size_t>(std::clamp(count, 0.0F, static_cast<float>(there)));
        }
    }
    return there == 0 || choices[0] < static_cast<std::int64_t>(there) ? "" : no_such_candidate(choices[0], there);
}

std::string ObservationReader::write_mask(const SegmentBuffer& buffer, std::size_t row, ArrayView mask) const {
    if (mask_.empty()) {
        return mask.given()
                   ? "Got a mask, but this policy was made without one. Set `action_mask: true` in the config (a "
                     "new policy_id may be needed), or leave the mask out."
                   : "";
    }
    const Seen& target = mask_.front();
    std::byte* allowed = buffer.row(target.place, row);
    if (!mask.given()) {
        std::memset(allowed, 1, target.values);
        return "";
    }
    if (!count_.empty() && mask.size() < target.values) {
        // A mask may have one entry for each candidate.
        const auto count = static_cast<std::size_t>(value_at<float>(buffer.row(count_.front().place, row), 0));
        if (mask.size() != count) {
            return wrong_size(target.spec, mask.size());
        }
        std::memset(allowed + count, 0, target.values - count);
    } else if (mask.size() != target.values) {
        return wrong_size(target.spec, mask.size());
    }
    const bool known = with_type(mask.type(), [&](auto kind) {
        for (std::size_t index = 0; index < mask.size(); ++index) {
            // A bool from the caller may be any byte; only 0 is false.
            using Number = std::conditional_t<std::is_same_v<decltype(kind), bool>, std::uint8_t, decltype(kind)>;
            allowed[index] = std::byte{value_at<Number>(mask.data(), index) != Number{}};
        }
    });
    return known ? "" : "Got a mask of float16; pass bytes, 0 for what is forbidden.";
}

std::string ObservationReader::expected() const {
    std::string text;
    for (const Seen& seen : seen_) {
        text += (text.empty() ? "" : ", ") + to_string(seen.spec);
    }
    return text;
}

}  // namespace rl4sys::client
