/// The parameters of algorithms under the names of the original RL4Sys, translated to the present ones.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "client/json.hpp"
#include "client/section.hpp"

namespace rl4sys::client {

/// The parameters of an algorithm, of its buffer, and of its networks.
struct Translated {
    Json algorithm = Json::object();
    Json buffer;  ///< Null where nothing is said about it.
    Json hidden;  ///< Sizes of hidden layers; null where nothing is said about them.
};

/// Whether an algorithm, by its present name, learns on-policy.
bool is_on_policy(const std::string& name);

/// Whether an algorithm, by its original name in lower case, acts with a vector unless it says `discrete`.
bool is_continuous(const std::string& original);

/// The present name of an algorithm. @throws SettingsError
std::string algorithm_of(const std::string& original);

/// The values of original sections with the present names; `width` is the size of an observation, if known.
/// @throws SettingsError
Translated translate_parameters(Section& parameters, Section& training, const std::string& name, std::int64_t longest,
                                std::optional<std::int64_t> width);

/// The letters of a text in lower case.
std::string lower(std::string text);
/// The letters of a text in upper case.
std::string upper(std::string text);

}  // namespace rl4sys::client
