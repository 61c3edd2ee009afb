/// Caches the newest policy on disk, so that a client can start while the server is unreachable.
#pragma once

#include <filesystem>
#include <mutex>
#include <optional>
#include <string>

#include "client/clock.hpp"
#include "client/snapshot.hpp"

namespace rl4sys::client {

/// One file per client and policy: a line of JSON, then the weights as on the wire. Python reads it too.
class PolicyCache {
public:
    PolicyCache(const std::filesystem::path& directory, const std::string& name, Clock clock,
                InterfaceSettings settings = ActingMode::Explore);

    /// The cached policy; null if there is none or it is damaged.
    SharedSnapshot load() const;
    /// Write this policy now, or a later one in a few seconds.
    void keep(const SharedSnapshot& snapshot);
    /// Write the newest policy if it is not written yet. A failing disk is logged; decisions continue.
    void save();

private:
    std::filesystem::path path_;
    Clock clock_;
    InterfaceSettings settings_;
    std::mutex mutex_;
    std::optional<double> saved_at_;
    SharedSnapshot pending_;
};

}  // namespace rl4sys::client
