#include "wire/decisions.hpp"

#include <cmath>
#include <cstring>
#include <string_view>

namespace rl4sys::wire {
namespace {

[[noreturn]] void refuse(const std::string& problem) {
    throw ContractViolation("A reply of Act breaks the agreed schema: " + problem + ". Join again.");
}

void require_size(const std::string& label, std::string_view data, std::size_t expected) {
    if (data.size() != expected) {
        refuse("the " + label + " has " + std::to_string(data.size()) + " bytes; expected " + std::to_string(expected));
    }
}

void require_count(const std::string& label, std::size_t count, std::size_t expected) {
    if (count != expected) {
        refuse("it has " + std::to_string(count) + " arrays of " + label + "; expected " + std::to_string(expected));
    }
}

void append_floats(const std::string& label, std::string_view data, std::vector<float>& values) {
    const std::size_t before = values.size();
    values.resize(before + data.size() / sizeof(float));
    std::memcpy(values.data() + before, data.data(), data.size());
    for (std::size_t at = before; at < values.size(); ++at) {
        if (!std::isfinite(values[at])) {
            refuse("the " + label + " contains NaN or infinity");
        }
    }
}

/// Choices, which are sent in the smallest type that holds them all.
std::vector<std::int64_t> widened(const std::vector<std::uint64_t>& choices, std::string_view data) {
    const std::size_t width = choice_bytes(choices);
    std::vector<std::int64_t> values;
    for (std::size_t part = 0; part < choices.size(); ++part) {
        std::uint64_t choice = 0;
        for (std::size_t byte = 0; byte < width; ++byte) {
            choice |= std::uint64_t{static_cast<unsigned char>(data[part * width + byte])} << (8 * byte);
        }
        if (choice >= choices[part]) {
            refuse("an action is choice " + std::to_string(choice) + " of " + std::to_string(choices[part]));
        }
        values.push_back(static_cast<std::int64_t>(choice));
    }
    return values;
}

}  // namespace

std::vector<DecidedRow> decode_decisions(const SegmentFormat& form, const ActReply& reply, std::size_t rows) {
    require_count("extras", reply.extras.size(), form.extras.size());
    require_count("carry", reply.carry.size(), form.carry.size());
    const bool has_numbers = form.choices.empty() || form.action.type == ElementType::Float32;
    const std::size_t action_bytes =
        has_numbers ? form.action.bytes() : form.choices.size() * choice_bytes(form.choices);
    require_size("action", reply.action, rows * action_bytes);
    for (std::size_t place = 0; place < form.extras.size(); ++place) {
        require_size("extras", reply.extras[place], rows * form.extras[place].bytes());
    }
    for (std::size_t place = 0; place < form.carry.size(); ++place) {
        require_size("carry", reply.carry[place], rows * form.carry[place].bytes());
    }
    std::vector<DecidedRow> decided(rows);
    for (std::size_t row = 0; row < rows; ++row) {
        const auto bytes = [row](const std::string& column, std::size_t size) {
            return std::string_view(column).substr(row * size, size);
        };
        const std::string_view action = bytes(reply.action, action_bytes);
        if (has_numbers) {
            append_floats("action", action, decided[row].numbers);
        } else {
            decided[row].choices = widened(form.choices, action);
        }
        for (std::size_t place = 0; place < form.extras.size(); ++place) {
            decided[row].extras.emplace_back(bytes(reply.extras[place], form.extras[place].bytes()));
        }
        for (std::size_t place = 0; place < form.carry.size(); ++place) {
            append_floats("carry", bytes(reply.carry[place], form.carry[place].bytes()), decided[row].carry);
        }
    }
    return decided;
}

}  // namespace rl4sys::wire
