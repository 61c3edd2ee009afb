/// Reads typed values out of a part of a config file, and says clearly what is wrong with the others.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "client/json.hpp"
#include "rl4sys/settings.hpp"

namespace rl4sys::client {

/// Values by name, each of which must be asked for: `finish` refuses what nobody read.
class Section {
public:
    /// @throws SettingsError unless `values` are names with values.
    explicit Section(Json values, std::string where = "");

    const std::string& where() const { return where_; }
    bool contains(const std::string& name) const { return values_.contains(name); }
    /// The value as it is; null where it is absent.
    Json raw(const std::string& name);
    /// A text that is not empty; empty where it is absent.
    std::string text(const std::string& name);
    /// A whole number, `least` or more.
    std::optional<std::int64_t> whole(const std::string& name, std::int64_t least = 0);
    /// A number, `least` or more.
    std::optional<double> number(const std::string& name, double least = 0.0);
    /// One of a few words; `otherwise` where it is absent.
    std::string choice(const std::string& name, const std::vector<std::string>& allowed, const std::string& otherwise);
    /// The names and values below one name; empty where it is absent.
    Section section(const std::string& name);
    /// Everything that was not read yet, which counts as read from now on.
    Json rest();
    /// Refuse names that nobody read.
    void finish() const;

private:
    std::string place(const std::string& name) const { return where_.empty() ? name : where_ + "." + name; }
    [[noreturn]] void wrong(const std::string& name, const Json& value, const std::string& expected) const;

    std::string where_;
    Json values_;
    std::set<std::string> read_;
};

/// `; did you mean 'pi_lr'?`, or nothing when no known word is near.
std::string did_you_mean(const std::string& word, const std::vector<std::string>& known);

/// Words with a separator between them.
std::string joined(const std::vector<std::string>& words, const std::string& separator = ", ");

/// A number as people write it: 0.001, not 0.0010000000000000000208.
std::string shown(double number);

/// A value for an error message, cut short when long.
std::string shown(const Json& value);

}  // namespace rl4sys::client
