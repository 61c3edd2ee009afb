#include "client/section.hpp"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <string_view>
#include <utility>

namespace rl4sys::client {
namespace {

constexpr double near_enough = 0.6;

std::string folded(std::string word) {
    std::transform(word.begin(), word.end(), word.begin(), [](unsigned char letter) { return std::tolower(letter); });
    return word;
}

/// Letters that two words share in order: those of the longest common substring, and of the parts on either side of it.
std::size_t common_letters(std::string_view a, std::string_view b) {
    std::size_t longest = 0;
    std::size_t at_a = 0;
    std::size_t at_b = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        for (std::size_t j = 0; j < b.size(); ++j) {
            std::size_t length = 0;
            while (i + length < a.size() && j + length < b.size() && a[i + length] == b[j + length]) {
                ++length;
            }
            if (length > longest) {
                longest = length;
                at_a = i;
                at_b = j;
            }
        }
    }
    if (longest == 0) {
        return 0;
    }
    return longest + common_letters(a.substr(0, at_a), b.substr(0, at_b)) +
           common_letters(a.substr(at_a + longest), b.substr(at_b + longest));
}

}  // namespace

Section::Section(Json values, std::string where) : where_(std::move(where)), values_(std::move(values)) {
    if (!values_.is_object()) {
        throw SettingsError((where_.empty() ? "The settings" : where_) + ": got " + shown(values_) +
                            "; expected a mapping of names to values.");
    }
}

Json Section::raw(const std::string& name) {
    read_.insert(name);
    const auto value = values_.find(name);
    return value == values_.end() ? Json() : *value;
}

std::string Section::text(const std::string& name) {
    const Json value = raw(name);
    if (value.is_null()) {
        return "";
    }
    if (!value.is_string() || value.get_ref<const std::string&>().empty()) {
        wrong(name, value, "a string");
    }
    return value.get<std::string>();
}

std::optional<std::int64_t> Section::whole(const std::string& name, std::int64_t least) {
    const Json value = raw(name);
    if (value.is_null()) {
        return std::nullopt;
    }
    const bool too_large =
        value.is_number_unsigned() && value.get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX);
    if (!value.is_number_integer() || too_large || value.get<std::int64_t>() < least) {
        wrong(name, value, "a whole number, at least " + std::to_string(least));
    }
    return value.get<std::int64_t>();
}

std::optional<double> Section::number(const std::string& name, double least) {
    const Json value = raw(name);
    if (value.is_null()) {
        return std::nullopt;
    }
    if (!value.is_number() || !(value.get<double>() >= least)) {
        wrong(name, value, "a number, at least " + shown(least));
    }
    return value.get<double>();
}

std::string Section::choice(const std::string& name, const std::vector<std::string>& allowed,
                            const std::string& otherwise) {
    const Json value = raw(name);
    if (value.is_null()) {
        return otherwise;
    }
    const std::string word = value.is_string() ? value.get<std::string>() : "";
    if (std::find(allowed.begin(), allowed.end(), word) == allowed.end()) {
        wrong(name, value, "one of " + joined(allowed) + did_you_mean(word, allowed));
    }
    return word;
}

Section Section::section(const std::string& name) {
    const Json value = raw(name);
    return Section(value.is_null() ? Json::object() : value, place(name));
}

Json Section::rest() {
    Json rest = Json::object();
    for (const auto& [name, value] : values_.items()) {
        if (read_.insert(name).second) {
            rest[name] = value;
        }
    }
    return rest;
}

void Section::finish() const {
    for (const auto& [name, value] : values_.items()) {
        if (read_.count(name) == 0) {
            const std::vector<std::string> words(read_.begin(), read_.end());
            throw SettingsError(place(name) + ": unknown name" + did_you_mean(name, words) +
                                ". Known here: " + joined(words) + ".");
        }
    }
}

void Section::wrong(const std::string& name, const Json& value, const std::string& expected) const {
    throw SettingsError(place(name) + ": got " + shown(value) + "; expected " + expected + ".");
}

std::string did_you_mean(const std::string& word, const std::vector<std::string>& known) {
    const std::string wanted = folded(word);
    std::pair<double, std::string> best{near_enough, ""};
    for (const std::string& candidate : known) {
        const double common = 2.0 * static_cast<double>(common_letters(folded(candidate), wanted));
        const double ratio = common / static_cast<double>(std::max<std::size_t>(1, candidate.size() + wanted.size()));
        best = std::max(best, std::pair(ratio, candidate));
    }
    return best.second.empty() ? "" : "; did you mean '" + best.second + "'?";
}

std::string joined(const std::vector<std::string>& words, const std::string& separator) {
    std::string text;
    for (const std::string& word : words) {
        text += (text.empty() ? "" : separator) + word;
    }
    return text;
}

std::string shown(double number) {
    char text[32];
    std::snprintf(text, sizeof text, "%g", number);
    return text;
}

std::string shown(const Json& value) {
    const std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
    return text.size() <= 80 ? text : text.substr(0, 77) + "...";
}

}  // namespace rl4sys::client
