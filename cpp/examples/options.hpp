/// @file
/// Options on the command line of the examples, such as `--episodes 100`, and their `--help`.
#pragma once

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace examples {

struct Option {
    std::string name;
    /// The default; `off` for a switch, which takes no value.
    std::string value;
    std::string help;

    bool is_switch() const { return value == "off" || value == "on"; }
};

class Options {
public:
    /// The known options with their defaults. @throws std::invalid_argument for others.
    Options(int count, char** words, std::string about, std::vector<Option> known)
        : program_(words[0]), about_(std::move(about)), options_(std::move(known)) {
        options_.push_back({"--help", "off", "Show this text."});
        usage_ = usage();
        for (int place = 1; place < count; ++place) {
            Option& option = find(words[place]);
            if (option.is_switch()) {
                option.value = "on";
            } else if (++place < count) {
                option.value = words[place];
            } else {
                throw std::invalid_argument(option.name + " needs a value.\n" + usage_);
            }
        }
    }

    const std::string& text(const std::string& name) const { return const_cast<Options*>(this)->find(name).value; }
    bool is_on(const std::string& name) const { return text(name) == "on"; }

    /// @throws std::invalid_argument if it is not a number, or below `least`.
    double number(const std::string& name, double least = 0.0) const {
        const std::string& value = text(name);
        std::size_t read = 0;
        double number = 0.0;
        try {
            number = std::stod(value, &read);
        } catch (const std::exception&) {
            read = 0;
        }
        if (read == 0 || read != value.size() || !(number >= least)) {
            throw std::invalid_argument(name + " is '" + value + "'; expected a number from " + std::to_string(least));
        }
        return number;
    }

    /// What the program does, and every option with its default.
    std::string help() const {
        std::string text = usage_ + "\n\n" + about_ + "\n";
        for (const Option& option : options_) {
            const std::string shown = option.is_switch() || option.value.empty() ? "" : " (" + option.value + ")";
            text += "\n  " + option.name + std::string(std::max<std::size_t>(1, 14 - option.name.size()), ' ') +
                    option.help + shown;
        }
        return text + "\n";
    }

private:
    Option& find(const std::string& name) {
        for (Option& option : options_) {
            if (option.name == name) return option;
        }
        throw std::invalid_argument("There is no option '" + name + "'.\n" + usage_);
    }

    std::string usage() const {
        std::string text = "usage: " + program_;
        for (const Option& option : options_) {
            const bool has_value = !option.is_switch() && !option.value.empty();
            text += " [" + option.name + (has_value ? " " + option.value : option.is_switch() ? "" : " VALUE") + "]";
        }
        return text;
    }

    std::string program_;
    std::string about_;
    std::vector<Option> options_;
    /// With the defaults.
    std::string usage_;
};

}  // namespace examples
