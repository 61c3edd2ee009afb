/// The small file through which a writer tells other processes, cheaply, how far they may read.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "records/files.hpp"

namespace rl4sys::records {

/// Two numbers, each one past the last record that it covers.
struct Ends {
    std::uint64_t committed = 0;  ///< Followers may read every record below.
    std::uint64_t durable = 0;  ///< Every record below is on the disk; what is missing of these was damaged, not torn.
};

/// The file as its writer holds it. It is written in place, so that followers can keep it open.
class CommittedEnd {
public:
    explicit CommittedEnd(std::unique_ptr<File> file);

    /// Tell followers. Never before the records themselves are as safe as they should be.
    void publish(const Ends& ends);
    void sync();

private:
    std::unique_ptr<File> file_;
};

/// What the last writer told its followers; nothing if that file is missing or damaged, which costs no record.
std::optional<Ends> known_ends(const Path& directory, const Files& files);

/// Publish the ends, in place even of damaged ones; a missing file is made anew, wholly or not at all.
CommittedEnd tell_ends(const Path& directory, Files& files, const Ends& ends);

}  // namespace rl4sys::records
