/// Errors of record files.
#pragma once

#include <cerrno>
#include <stdexcept>
#include <string>
#include <system_error>

namespace rl4sys::records {

/// Acknowledged records are unreadable or missing. Records after them are not read as if nothing were missing.
struct RecordsDamaged : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// Another writer has the log open; two would overwrite each other.
struct LogInUse : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// There is no space for these records. They were removed again; the next append may succeed without reopening.
struct LogFull : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// A write or a sync failed, so what is on the disk is unknown. Nothing is accepted until the log is reopened.
struct LogBroken : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// A system call failed; `code()` is its errno.
struct FileError : std::system_error {
    FileError(int number, const std::string& what) : std::system_error(number, std::generic_category(), what) {}

    /// Whether it passes once space is freed.
    bool no_space() const { return code().value() == ENOSPC || code().value() == EDQUOT; }
    bool not_found() const { return code().value() == ENOENT; }
};

}  // namespace rl4sys::records
