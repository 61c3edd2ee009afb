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

SharedSnapshot parsed(const std::string& contents) {
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
    const std::size_t size = Layout(spec.program.tensors).size();
    if (blob.size() != sizeof(float) * size) {
        throw std::runtime_error("its weights have another size than its policy");
    }
    Weights weights(size);
    std::memcpy(weights.data(), blob.data(), blob.size());
    snapshot->weights = std::make_shared<const Weights>(std::move(weights));
    const Policy trial(spec, snapshot->weights);
    snapshot->form = std::make_shared<const wire::SegmentFormat>(wire::format_of(spec));
    snapshot->spec = std::make_shared<const PolicySpec>(std::move(spec));
    snapshot->schema_hash = bytes_of(head.at("schema_hash").get<std::string>());
    if (snapshot->schema_hash.size() != std::tuple_size_v<Digest>) {
        throw std::runtime_error("its schema hash is missing");
    }
    snapshot->learner = head.at("learner").get<std::string>();
    // Files of earlier versions have no lineage and no exploit policy.
    snapshot->lineage = head.value("lineage", std::string());
    if (const auto exploit = head.find("exploit"); exploit != head.end() && exploit->is_string()) {
        snapshot->exploit = std::make_shared<const PolicySpec>(policy_from_json(exploit->get<std::string>()));
    }
    snapshot->version = head.at("version").get<std::uint64_t>();
    snapshot->max_steps = head.at("max_steps").get<std::size_t>();
    return snapshot;
}

/// Replace a file in one step: readers see either the old contents or the new ones.
void replace_file(const std::filesystem::path& path, const std::string& contents) {
    records::DiskFiles files;
    files.make_directory(path.parent_path());
    const std::filesystem::path aside = path.parent_path() / ("." + path.filename().string() + ".tmp");
    try {
        const auto file = files.create(aside);
        file->write(0, contents);
        file->sync();
        files.rename(aside, path);
    } catch (const records::FileError&) {
        // A half-written file would only take space, which may be what is missing.
        std::error_code ignored;
        std::filesystem::remove(aside, ignored);
        throw;
    }
    files.sync_directory(path.parent_path());
}

}  // namespace

PolicyCache::PolicyCache(const std::filesystem::path& directory, const std::string& name, Clock clock)
    : path_(directory / (name + ".policy")), clock_(std::move(clock)) {}

SharedSnapshot PolicyCache::load() const {
    std::ifstream file(path_, std::ios::binary);
    if (!file) {
        return nullptr;
    }
    std::ostringstream contents;
    contents << file.rdbuf();
    try {
        return parsed(contents.str());
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
              {"spec", policy_to_json(*snapshot->spec)},
              {"schema_hash", hex_of(snapshot->schema_hash)},
              {"learner", snapshot->learner},
              {"lineage", snapshot->lineage},
              {"version", snapshot->version},
              {"max_steps", snapshot->max_steps},
              {"sha256", to_hex(sha256(weights))}};
    if (snapshot->exploit) {
        head["exploit"] = policy_to_json(*snapshot->exploit);
    }
    std::string contents = head.dump() + "\n";
    contents.append(reinterpret_cast<const char*>(weights.data()), sizeof(float) * weights.size());
    try {
        replace_file(path_, contents);
    } catch (const records::FileError& error) {
        log(LogLevel::Warning, "The policy cannot be cached in " + path_.string() + ": " + error.what() + ".");
    }
}

}  // namespace rl4sys::client
