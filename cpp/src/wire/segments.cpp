#include "wire/segments.hpp"

#include <rl4sys/v1/experience.pb.h>

#include <cmath>
#include <cstring>

#include "wire/segment_columns.hpp"

namespace rl4sys::wire {
namespace {

[[noreturn]] void refuse(const std::string& problem) {
    throw SegmentRefused("A segment cannot be learned from: " + problem +
                         ". Rejoin after changing what is observed or done, or choose another policy_id.");
}

template <typename Float>
bool is_finite(std::string_view data) {
    for (std::size_t at = 0; at < data.size(); at += sizeof(Float)) {
        Float value;
        std::memcpy(&value, data.data() + at, sizeof value);
        if (!std::isfinite(value)) {
            return false;
        }
    }
    return true;
}

void require_sound(const std::string& label, const ArraySpec& spec, std::string_view data, std::size_t rows) {
    if (data.size() != rows * spec.bytes()) {
        refuse("the " + label + " has " + std::to_string(data.size()) + " bytes; expected " + std::to_string(rows) +
               " rows of " + to_string(spec));
    }
    const bool sound = spec.type == ElementType::Float32   ? is_finite<float>(data)
                       : spec.type == ElementType::Float64 ? is_finite<double>(data)
                                                           : true;
    if (!sound) {
        refuse("the " + label + " '" + spec.name + "' contains NaN or infinity");
    }
}

void require_group(const std::string& label, const std::vector<ArraySpec>& specs,
                   const std::vector<std::string_view>& columns, std::size_t rows) {
    if (columns.size() != specs.size()) {
        refuse("it has " + std::to_string(columns.size()) + " arrays of " + label + "; " +
               std::to_string(specs.size()) + " were agreed on");
    }
    for (std::size_t place = 0; place < specs.size(); ++place) {
        require_sound(label, specs[place], columns[place], rows);
    }
}

void add_group(v1::Segment& message, const std::vector<std::string_view>& columns) {
    for (const std::string_view column : columns) {
        message.add_columns(column.data(), column.size());
    }
}

/// Choices in the smallest type that holds them all.
std::string narrowed(const std::vector<std::uint64_t>& choices, std::string_view action) {
    const std::size_t width = choice_bytes(choices);
    const std::size_t count = action.size() / sizeof(std::int64_t);
    std::string data(count * width, '\0');
    for (std::size_t part = 0; part < count; ++part) {
        // As unsigned, a negative number is larger than every bound.
        std::uint64_t choice = 0;
        std::memcpy(&choice, action.data() + part * sizeof choice, sizeof choice);
        if (choice >= choices[part % choices.size()]) {
            refuse("an action is choice " + std::to_string(choice) + " of " +
                   std::to_string(choices[part % choices.size()]) + ", counted from 0");
        }
        for (std::size_t byte = 0; byte < width; ++byte) {
            data[part * width + byte] = static_cast<char>(choice >> (8 * byte));
        }
    }
    return data;
}

}  // namespace

v1::Ending ending_of(Ending ending) {
    switch (ending) {
        case Ending::Continues: return v1::ENDING_CONTINUES;
        case Ending::Terminated: return v1::ENDING_TERMINATED;
        case Ending::Truncated: return v1::ENDING_TRUNCATED;
    }
    return v1::ENDING_UNSPECIFIED;
}

void require_columns(const SegmentFormat& form, const SegmentView& segment) {
    static const ArraySpec reward{"reward", ElementType::Float32, {}};
    require_group("observation", form.observation, segment.observation, std::size_t{segment.steps} + 1);
    require_sound("action", form.action, segment.action, segment.steps);
    require_sound("reward", reward, segment.reward, segment.steps);
    require_group("extras", form.extras, segment.extras, segment.steps);
    require_group("carry", form.carry, segment.carry, 1);
}

std::string sent_action(const SegmentFormat& form, std::string_view action) {
    // The choices of a mixed action are floats, like the rest of it.
    if (form.choices.empty() || form.action.type == ElementType::Float32) {
        return std::string(action);
    }
    return narrowed(form.choices, action);
}

std::string encode_segment(const SegmentFormat& form, const SegmentView& segment) {
    v1::Segment message;
    message.set_agent(segment.agent.data(), segment.agent.size());
    message.set_lane(segment.lane);
    message.set_episode(segment.episode);
    message.set_start(segment.start);
    message.set_policy_version(segment.policy_version);
    message.set_ending(ending_of(segment.ending));
    message.set_steps(segment.steps);
    if (segment.decided_by_fallback) {
        message.set_decided_by(v1::DECIDED_BY_FALLBACK);
    } else if (segment.decided_by_incumbent) {
        message.set_decided_by(v1::DECIDED_BY_INCUMBENT);
    }
    message.set_elapsed(segment.elapsed.data(), segment.elapsed.size());
    require_columns(form, segment);
    add_group(message, segment.observation);
    message.add_columns(sent_action(form, segment.action));
    message.add_columns(segment.reward.data(), segment.reward.size());
    add_group(message, segment.extras);
    add_group(message, segment.carry);
    return message.SerializeAsString();
}

}  // namespace rl4sys::wire
