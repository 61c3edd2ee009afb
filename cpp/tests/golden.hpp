/// @file
/// Reads the golden vectors as conformance/README.md describes them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "rl4sys/arrays.hpp"

namespace rl4sys::golden {

using Json = nlohmann::json;

inline std::string read_file(const std::string& name) {
    const std::string path = std::string(RL4SYS_CONFORMANCE) + "/vectors/" + name;
    std::ifstream file(path, std::ios::binary);
    if (!file) throw std::runtime_error("Cannot read " + path + "; run python conformance/generate.py.");
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// One array of a case, as bytes.
struct Array {
    ElementType type = ElementType::Float32;
    std::vector<std::size_t> shape;
    std::string bytes;

    std::size_t rows() const { return shape.at(0); }
    std::size_t row_values() const {
        std::size_t count = 1;
        for (std::size_t axis = 1; axis < shape.size(); ++axis) count *= shape[axis];
        return count;
    }
    const char* row(std::size_t index) const { return bytes.data() + index * row_values() * element_size(type); }
    template <typename Value>
    std::vector<Value> row_as(std::size_t index) const {
        std::vector<Value> values(row_values());
        if (!values.empty()) std::memcpy(values.data(), row(index), values.size() * sizeof(Value));
        return values;
    }
    template <typename Value>
    std::vector<Value> all() const {
        std::vector<Value> values(bytes.size() / sizeof(Value));
        if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
        return values;
    }
};

/// One entry of an index, with its arrays by name.
struct Case {
    Json entry;
    std::map<std::string, Array> arrays;
};

inline std::map<std::string, Array> read_arrays(const Json& entries, const std::string& data) {
    std::map<std::string, Array> arrays;
    for (const Json& raw : entries) {
        Array array{element_type(raw.at("dtype").get<std::string>()), raw.at("shape"), {}};
        std::size_t count = 1;
        for (const std::size_t length : array.shape) count *= length;
        const std::size_t offset = raw.at("offset"), bytes = count * element_size(array.type);
        if (offset + bytes > data.size()) throw std::runtime_error("An array is beyond the end of its file.");
        array.bytes = data.substr(offset, bytes);
        arrays.emplace(raw.at("name").get<std::string>(), std::move(array));
    }
    return arrays;
}

/// The cases of NAME.json, by name.
inline std::map<std::string, Case> read_cases(const std::string& name) {
    const Json index = Json::parse(read_file(name + ".json"));
    const std::string data = read_file(index.at("file"));
    std::map<std::string, Case> cases;
    for (const Json& entry : index.at("cases")) {
        cases.emplace(entry.at("name").get<std::string>(), Case{entry, read_arrays(entry.at("arrays"), data)});
    }
    return cases;
}

/// The names of the cases of NAME.json, for parametrised tests.
inline std::vector<std::string> case_names(const std::string& name) {
    std::vector<std::string> names;
    const Json index = Json::parse(read_file(name + ".json"));
    for (const Json& entry : index.at("cases")) names.push_back(entry.at("name"));
    return names;
}

}  // namespace rl4sys::golden
