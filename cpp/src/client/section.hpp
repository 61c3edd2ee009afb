/// Reads typed values from a section of a config file, with a clear error for every wrong one.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "client/json.hpp"
#include "rl4sys/settings.hpp"

namespace rl4sys::client {

/// Values by name. `finish` refuses every name that was not read.
class Section {
public:
    /// @throws SettingsError unless `values` is an object.
    explicit Section(Json values, std::string where = "");

    const std::string& where() const { return where_; }
    bool contains(const std::string& name) const { return values_.contains(name); }
    /// The value, unchecked; null where it is absent.
    Json raw(const std::string& name);
    /// A string; empty where it is absent.
    std::string text(const std::string& name);
    /// A whole number, `least` or more.
    std::optional<std::int64_t> whole(const std::string& name, std::int64_t least = 0);
    /// A number, `least` or more.
    std::optional<double> number(const std::string& name, double least = 0.0);
    /// One of the allowed words; `otherwise` where it is absent.
    std::string choice(const std::string& name, const std::vector<std::string>& allowed, const std::string& otherwise);
    /// The section with this name; an empty one where it is absent.
    Section section(const std::string& name);
    /// All values that were not read yet; they count as read from now on.
    Json rest();
    /// Refuse names that were not read.
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

/// A number in its shortest form: 0.001, not 0.0010000000000000000208.
std::string shown(double number);

/// A value for an error message, shortened if it is long.
std::string shown(const Json& value);

}  // namespace rl4sys::client
