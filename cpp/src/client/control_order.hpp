/// Orders of operators to the clients of a learner, and the file in which a client remembers the latest one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <mutex>
#include <string>

#include "wire/calls.hpp"

namespace rl4sys::client {

/// What clients have to do. The numbers are those of the protocol.
enum class ControlMode : std::uint8_t {
    Follow = 1,  ///< Act with the newest version.
    Frozen = 2,  ///< Keep acting with the present version.
    Off = 3,     ///< Do not act with any version: the fallback decides.
};

/// An order; the one with the greatest sequence counts.
struct ControlOrder {
    ControlMode mode = ControlMode::Follow;
    std::uint64_t sequence = 0;
    std::string reason;
    std::string ordered_by;

    /// The order in a message. A mode of a later protocol is obeyed as `off`, the most careful one.
    static ControlOrder from_message(const wire::Control& message);
    /// Its mode with its author and reason.
    std::string text() const;
};

/// Remembers the latest order, so that it is obeyed after a restart even while the server is unreachable.
/// Python reads it too.
class ControlFile {
public:
    ControlFile(const std::filesystem::path& directory, const std::string& name);

    /// The latest order; without one, clients follow. A file that cannot be read counts as `off`.
    ControlOrder load();
    /// Write the order durably, unless a later one was written. A failing disk is logged; the order is obeyed in any
    /// case.
    void save(const ControlOrder& order);

private:
    std::filesystem::path path_;
    std::mutex mutex_;
    std::uint64_t saved_ = 0;  ///< The sequence of the order in the file.
};

}  // namespace rl4sys::client
