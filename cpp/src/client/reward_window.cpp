#include "client/reward_window.hpp"

#include <regex>

#include "client/section.hpp"

namespace rl4sys::client {
namespace {

std::optional<double> seconds_of(const Json& value) {
    static const std::regex seconds(R"(\s*(\d+(\.\d+)?)s\s*)");
    std::smatch found;
    const std::string text = value.is_string() ? value.get<std::string>() : "";
    return std::regex_match(text, found, seconds) ? std::optional(std::stod(found[1])) : std::nullopt;
}

}  // namespace

RewardWindow reward_window_from_settings(const Json& value) {
    if (value.is_number_integer() && (value.is_number_unsigned() || value.get<std::int64_t>() >= 0)) {
        return value.get<std::size_t>();
    }
    const std::optional<double> seconds = seconds_of(value);
    if (!seconds) {
        throw SettingsError("reward_window: got " + shown(value) +
                            "; expected a number of decisions, such as 16, or a time, such as '30s'.");
    }
    return RewardWindow::of_seconds(*seconds);
}

RewardWindow reward_timeout_from_settings(const Json& value, const Json& window) {
    if (!window.is_null()) {
        throw SettingsError("reward_timeout: got " + shown(value) + " beside reward_window " + shown(window) +
                            "; rewards come late by time or by decisions. Leave one out.");
    }
    const std::optional<double> seconds = seconds_of(value);
    if (!seconds) {
        throw SettingsError("reward_timeout: got " + shown(value) + "; expected a time with its unit, such as '5s'.");
    }
    return RewardWindow::of_timeout(*seconds);
}

}  // namespace rl4sys::client
