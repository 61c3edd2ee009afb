#include "client/reward_window.hpp"

#include <regex>

#include "client/section.hpp"

namespace rl4sys::client {

RewardWindow reward_window_from_settings(const Json& value) {
    if (value.is_number_integer() && (value.is_number_unsigned() || value.get<std::int64_t>() >= 0)) {
        return value.get<std::size_t>();
    }
    static const std::regex seconds(R"(\s*(\d+(\.\d+)?)s\s*)");
    std::smatch found;
    const std::string text = value.is_string() ? value.get<std::string>() : "";
    if (!std::regex_match(text, found, seconds)) {
        throw SettingsError("reward_window: got " + shown(value) +
                            "; expected a number of decisions, such as 16, or a time, such as '30s'.");
    }
    return RewardWindow::of_seconds(std::stod(found[1]));
}

}  // namespace rl4sys::client
