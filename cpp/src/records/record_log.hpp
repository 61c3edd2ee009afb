/// The writer of a log: appends permanently numbered records to files that rotate.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "records/errors.hpp"
#include "records/recovery.hpp"

namespace rl4sys::records {

/// A directory of record files with one writer. Not thread-safe.
///
/// Opening repairs the log after a crash: a torn tail is cut, damage of acknowledged records throws
/// `RecordsDamaged`. Appended records are with the operating system: they survive a killed process, not a power cut.
class RecordLog {
public:
    RecordLog(Path directory, std::size_t file_bytes, std::shared_ptr<Files> files);
    ~RecordLog();
    RecordLog(const RecordLog&) = delete;
    RecordLog& operator=(const RecordLog&) = delete;

    /// The number that the next record gets.
    std::uint64_t end() const { return end_; }
    /// Bytes of all record files.
    std::size_t size() const;
    /// The error that broke the log; nothing while it works.
    const std::optional<std::string>& broken() const { return broken_; }

    /// Append records, publish them to readers, and return the number of the first.
    ///
    /// After `LogFull` nothing was appended and the log still works; after `LogBroken` it is unknown what was appended.
    std::uint64_t append(const std::vector<std::string>& payloads);

    /// Remove the files that hold only records below `before`.
    void prune(std::uint64_t before);

    /// Call for every record, oldest first. Throws `RecordsDamaged` at the first that is not sound.
    void read_all(const std::function<void(std::uint64_t number, std::string_view payload)>& take) const;

    /// Sync the published ends and close; a broken log is only closed.
    void close();

private:
    std::uint64_t oldest() const { return finished_.empty() ? file_first_ : finished_.front().first; }
    void rotate();
    void publish();
    void take_back();
    void require_working() const;
    [[noreturn]] void break_with(const FileError& cause);
    LogFull full() const;

    Path directory_;
    std::size_t file_bytes_;
    std::shared_ptr<Files> files_;
    std::unique_ptr<Lock> lock_;
    std::deque<FinishedFile> finished_;
    std::unique_ptr<File> file_;
    std::optional<CommittedEnd> ends_;
    std::uint64_t file_first_ = 0;
    std::size_t length_ = 0;
    std::uint64_t end_ = 0;
    std::uint64_t durable_ = 0;
    std::optional<std::string> broken_;
    bool closed_ = false;
};

}  // namespace rl4sys::records
