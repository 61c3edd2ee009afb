#include "client/policy_cache.hpp"

#include <cstring>
#include <fstream>
#include <sstream>
#include <utility>

#include "client/json.hpp"
#include "records/errors.hpp"
#include "records/files.hpp"
#include "rl4sys/log.hpp"

namespace rl4sys::client {
namespace {

constexpr int format = 1;
// Minimum seconds between two writes: most versions are soon replaced.
constexpr double seconds_between = 5.0;

std::string hex_of(std::string_view bytes) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string text;
    for (const char byte : bytes) {
        text += digits[static_cast<unsigned char>(byte) >> 4];
        text += digits[static_cast<unsigned char>(byte) & 15];
    }
    return text;
}

std::string bytes_of(const std::string& hex) {
    std::string bytes;
    for (std::size_t at = 0; at + 1 < hex.size(); at += 2) {
        bytes += static_cast<char>(std::stoi(hex.substr(at, 2), nullptr, 16));
    }
    return bytes;
}

SharedSnapshot parsed(const std::string& contents, const InterfaceSettings& settings) {
    const std::size_t line = contents.find('\n');
    if (line == std::string::npos) {
        throw std::runtime_error("it has no second part");
    }
    const Json head = Json::parse(contents.substr(0, line));
    const std::string_view blob = std::string_view(contents).substr(line + 1);
    if (head.at("format") != format || to_hex(sha256(blob.data(), blob.size())) != head.at("sha256")) {
        throw std::runtime_error("its format or its checksum is wrong");
    }
    auto snapshot = std::make_shared<Snapshot>();
    PolicySpec spec = policy_from_json(head.at("spec").get<std::string>());
    // Files of earlier versions have no exploit policy and no lineage.
    std::optional<PolicySpec> exploit;
    if (const auto found = head.find("exploit"); found != head.end() && found->is_string()) {
        exploit = policy_from_json(found->get<std::string>());
    }
    const std::size_t size = Layout(spec.program.tensors).size();
    if (blob.size() != sizeof(float) * size) {
        throw std::runtime_error("its weights have another size than its policy");
    }
    Weights weights(size);
    std::memcpy(weights.data(), blob.data(), blob.size());
    snapshot->weights = std::make_shared<const Weights>(std::move(weights));
    snapshot->interface = std::make_shared<const PolicyInterface>(std::move(spec), std::move(exploit), settings);
    snapshot->schema_hash = bytes_of(head.at("schema_hash").get<std::string>());
    if (snapshot->schema_hash.size() != std::tuple_size_v<Digest>) {
        throw std::runtime_error("its schema hash is missing");
    }
    snapshot->learner = head.at("learner").get<std::string>();
    snapshot->lineage = head.value("lineage", std::string());
    snapshot->version = head.at("version").get<std::uint64_t>();
    snapshot->max_steps = head.at("max_steps").get<std::size_t>();
    return snapshot;
}

}  // namespace

PolicyCache::PolicyCache(const std::filesystem::path& directory, const std::string& name, Clock clock,
                         InterfaceSettings settings)
    : path_(directory / (name + ".policy")), clock_(std::move(clock)), settings_(std::move(settings)) {}

SharedSnapshot PolicyCache::load() const {
    std::ifstream file(path_, std::ios::binary);
    if (!file) {
        return nullptr;
    }
    std::ostringstream contents;
    contents << file.rdbuf();
    try {
        return parsed(contents.str(), settings_);
    } catch (const std::exception& error) {
        log(LogLevel::Warning, "The cached policy " + path_.string() + " cannot be used: " + error.what() +
                                   ". Delete it, or start while the server is reachable.");
        return nullptr;
    }
}

void PolicyCache::keep(const SharedSnapshot& snapshot) {
    {
        const std::lock_guard lock(mutex_);
        pending_ = snapshot;
        const double now = clock_();
        if (saved_at_ && now - *saved_at_ < seconds_between) {
            return;
        }
        saved_at_ = now;
    }
    save();
}

void PolicyCache::save() {
    const std::lock_guard lock(mutex_);
    const SharedSnapshot snapshot = std::exchange(pending_, nullptr);
    if (!snapshot) {
        return;
    }
    const Weights& weights = *snapshot->weights;
    Json head{{"format", format},
              {"spec", policy_to_json(*snapshot->interface->explore)},
              {"schema_hash", hex_of(snapshot->schema_hash)},
              {"learner", snapshot->learner},
              {"lineage", snapshot->lineage},
              {"version", snapshot->version},
              {"max_steps", snapshot->max_steps},
              {"sha256", to_hex(sha256(weights))}};
    if (snapshot->interface->exploit) {
        head["exploit"] = policy_to_json(*snapshot->interface->exploit);
    }
    std::string contents = head.dump() + "\n";
    contents.append(reinterpret_cast<const char*>(weights.data()), sizeof(float) * weights.size());
    try {
        records::replace_file(path_, contents);
    } catch (const records::FileError& error) {
        log(LogLevel::Warning, "The policy cannot be cached in " + path_.string() + ": " + error.what() + ".");
    }
}

}  // namespace rl4sys::client
