/// The small file through which a writer publishes how far other processes may read.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "records/files.hpp"

namespace rl4sys::records {

/// Two numbers, each one past the last record that it covers.
struct Ends {
    std::uint64_t committed = 0;  ///< Readers may read every record below this number.
    std::uint64_t durable = 0;    ///< Every record below is on the disk; a missing one is damage, not a torn tail.
};

/// The file as its writer has it. It is written in place, so that readers can keep it open.
class CommittedEnd {
public:
    explicit CommittedEnd(std::unique_ptr<File> file);

    /// Publish the ends to readers, after the records themselves are written.
    void publish(const Ends& ends);
    void sync();

private:
    std::unique_ptr<File> file_;
};

/// The ends that the last writer published; nothing if the file is missing or damaged, which loses no record.
std::optional<Ends> known_ends(const Path& directory, const Files& files);

/// Publish the ends, replacing damaged ones; a missing file is created completely or not at all.
CommittedEnd tell_ends(const Path& directory, Files& files, const Ends& ends);

}  // namespace rl4sys::records
