/// Opening a log that was closed, killed or unplugged: cut what was never acknowledged, refuse what is damaged.
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

/// A log ready for appending: everything in it is on the disk, and followers are told.
struct Recovered {
    std::deque<FinishedFile> finished;  ///< Oldest first.
    std::unique_ptr<File> file;
    std::uint64_t first = 0;
    std::size_t length = 0;
    std::uint64_t end = 0;
    std::size_t cut_bytes = 0;  ///< A torn tail that was removed: written at the time of the crash.
    std::uint64_t lost = 0;     ///< Records of it that followers could already read.
    CommittedEnd ends;
};

/// Open the newest file, settle what a crash left behind, and create what a new log lacks.
Recovered recover(const Path& directory, Files& files);

/// A new file of records with its header, wholly there or not at all.
std::unique_ptr<File> create_record_file(const Path& directory, Files& files, std::uint64_t first);

}  // namespace rl4sys::records
