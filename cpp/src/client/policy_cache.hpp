/// Keeps the newest policy on disk, so that a client can start while the server is away.
#pragma once

#include <filesystem>
#include <mutex>
#include <optional>
#include <string>

#include "client/clock.hpp"
#include "client/snapshot.hpp"

namespace rl4sys::client {

/// One file for each client and policy: a line of JSON, then the weights as they travel. Python reads it too.
class PolicyCache {
public:
    PolicyCache(const std::filesystem::path& directory, const std::string& name, Clock clock);

    /// The policy that was kept; null if there is none that checks out.
    SharedSnapshot load() const;
    /// Write this one, at once or with a later one.
    void keep(const SharedSnapshot& snapshot);
    /// Write what is not yet written. A disk that fails is told of, and decisions go on.
    void save();

private:
    std::filesystem::path path_;
    Clock clock_;
    std::mutex mutex_;
    std::optional<double> saved_at_;
    SharedSnapshot pending_;
};

}  // namespace rl4sys::client
