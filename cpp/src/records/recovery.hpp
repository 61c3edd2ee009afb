/// Opens a log after a clean end, a kill or a power cut: a torn tail is cut, damage is refused.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <utility>

#include "records/committed_end.hpp"
#include "records/files.hpp"

namespace rl4sys::records {

/// A file that takes no more records.
struct FinishedFile {
    std::uint64_t first = 0;
    std::size_t bytes = 0;
};

/// A log ready for appending: everything in it is on the disk, and readers know its end.
struct Recovered {
    std::deque<FinishedFile> finished;  ///< Oldest first.
    std::unique_ptr<File> file;
    std::uint64_t first = 0;
    std::size_t length = 0;
    std::uint64_t end = 0;
    std::size_t cut_bytes = 0;  ///< A torn tail that was removed: written at the time of the crash.
    std::uint64_t lost = 0;     ///< Its records that readers could already see.
    CommittedEnd ends;
};

/// Open the newest file, repair it after a crash, and create the files of a new log.
Recovered recover(const Path& directory, Files& files);

/// A new file of records with its header, wholly there or not at all.
std::unique_ptr<File> create_record_file(const Path& directory, Files& files, std::uint64_t first);

}  // namespace rl4sys::records
