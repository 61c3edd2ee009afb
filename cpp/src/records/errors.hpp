/// What can go wrong with record files, each with what to do next.
#pragma once

#include <cerrno>
#include <stdexcept>
#include <string>
#include <system_error>

namespace rl4sys::records {

/// Records that were acknowledged are unreadable or missing. Nothing after them is read as if they never were.
struct RecordsDamaged : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// Another writer has the log open; two would write over each other.
struct LogInUse : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// There is no space for these records. They were taken back; the next append may succeed without reopening.
struct LogFull : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// A write or a sync failed, so what is on the disk is unknown. Nothing is accepted until the log is reopened.
struct LogBroken : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// The operating system refused; `code()` is its errno.
struct FileError : std::system_error {
    FileError(int number, const std::string& what) : std::system_error(number, std::generic_category(), what) {}

    /// Whether it passes by itself once somebody makes room.
    bool no_space() const { return code().value() == ENOSPC || code().value() == EDQUOT; }
    bool not_found() const { return code().value() == ENOENT; }
};

}  // namespace rl4sys::records
