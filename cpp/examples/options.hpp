/// @file
/// Options on the command line of the examples, such as `--episodes 100`.
#pragma once

#include <algorithm>
#include <map>
#include <stdexcept>
#include <string>

namespace examples {

class Options {
public:
    /// The known options with their defaults. @throws std::invalid_argument for others.
    Options(int count, char** words, std::map<std::string, std::string> defaults) : values_(std::move(defaults)) {
        for (int place = 1; place < count; place += 2) {
            const auto option = values_.find(words[place]);
            if (option == values_.end() || place + 1 == count) {
                throw std::invalid_argument(usage(words[0]));
            }
            option->second = words[place + 1];
        }
    }

    const std::string& text(const std::string& name) const { return values_.at(name); }

    /// @throws std::invalid_argument if it is not a number, or below `least`.
    double number(const std::string& name, double least = 0.0) const {
        const std::string& value = values_.at(name);
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

private:
    std::string usage(const std::string& program) const {
        std::string text = "usage: " + program;
        for (const auto& [name, value] : values_) {
            text += " [" + name + " " + value + "]";
        }
        return text;
    }

    std::map<std::string, std::string> values_;
};

}  // namespace examples
