#include "rl4sys/portable_policy.hpp"

#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "weights/byte_order.hpp"

namespace rl4sys {
namespace {

using Json = nlohmann::json;

static_assert(little_endian, "Weights are read as they lie in memory; add a swap for other machines.");

/// The only format so far.
constexpr int format = 1;
/// Environments may have settings within settings; what is nested deeper than this could exhaust the stack.
constexpr int deepest = 64;

[[noreturn]] void fail(const std::string& path, const std::string& reason) {
    throw PolicyFileDamaged(path + " is not a valid policy file: " + reason +
                            ". Write it again with: rl4sys policy export RUN --output " + path);
}

/// The first line in its parts: the text that the hash is of, and the hash.
struct Sealed {
    std::string_view about, sha256;
};

/// Python writes keys in order and without spaces, so the text of `policy` stands in the line as it was hashed.
Sealed parts_of(std::string_view line, const std::string& path) {
    constexpr std::string_view begin = "{\"policy\":", middle = ",\"sha256\":\"", end = "\"}";
    constexpr std::size_t digits = 64, rest = middle.size() + digits + end.size();
    const bool is_long = line.size() > begin.size() + rest;
    if (!is_long || line.substr(0, begin.size()) != begin || line.substr(line.size() - rest, middle.size()) != middle ||
        line.substr(line.size() - end.size()) != end) {
        fail(path, "it does not begin with the description of one");
    }
    return {line.substr(begin.size(), line.size() - begin.size() - rest),
            line.substr(line.size() - digits - end.size(), digits)};
}

SharedWeights read_weights(std::string_view bytes) {
    auto weights = std::make_shared<Weights>(bytes.size() / sizeof(float));
    if (!weights->empty()) std::memcpy(weights->data(), bytes.data(), weights->size() * sizeof(float));
    return weights;
}

void require_fitting(const PolicySpec& spec, std::size_t weights, const std::string& path) {
    const std::size_t expected = Layout(spec.program.tensors).size();
    if (weights == expected) return;
    fail(path, "it has " + std::to_string(weights) + " weights, and its program takes " + std::to_string(expected));
}

}  // namespace

PortablePolicy PortablePolicy::read(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    const std::string data{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    if (!file.good() && !file.eof()) fail(path, "it cannot be read");
    return from_bytes(data, path);
}

PortablePolicy PortablePolicy::from_bytes(std::string_view data, const std::string& path) {
    const std::size_t end = data.find('\n');
    if (end == std::string_view::npos) fail(path, "it does not begin with the description of one");
    const Sealed sealed = parts_of(data.substr(0, end), path);
    const std::string_view bytes = data.substr(end + 1);
    std::string hashed(sealed.about);
    hashed.append("\n").append(bytes);
    if (to_hex(rl4sys::sha256(hashed.data(), hashed.size())) != sealed.sha256) fail(path, "its SHA-256 does not match");
    PortablePolicy policy;
    try {
        const auto shallow = [&](int depth, Json::parse_event_t, Json&) {
            if (depth > deepest) fail(path, "its description is nested too deeply");
            return true;
        };
        const Json about = Json::parse(sealed.about.begin(), sealed.about.end(), shallow);
        if (about.at("format") != format) {
            const auto found = std::to_string(about.at("format").get<std::int64_t>());
            fail(path, "its format is " + found + ", and this version reads " + std::to_string(format));
        }
        policy.explore = policy_from_json(about.at("explore").get<std::string>());
        policy.exploit = policy_from_json(about.at("exploit").get<std::string>());
        policy.version = about.at("version");
        policy.steps = about.at("steps");
    } catch (const Json::exception& error) {
        fail(path, std::string("it does not begin with the description of one (") + error.what() + ")");
    }
    if (bytes.size() % sizeof(float) != 0) fail(path, "its last weight is incomplete");
    policy.weights = read_weights(bytes);
    require_fitting(policy.explore, policy.weights->size(), path);
    require_fitting(policy.exploit, policy.weights->size(), path);
    return policy;
}

}  // namespace rl4sys
