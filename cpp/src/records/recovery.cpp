#include "records/recovery.hpp"

#include <algorithm>
#include <string>

#include "records/errors.hpp"
#include "records/frames.hpp"

namespace rl4sys::records {
namespace {

constexpr const char* advice =
    " Restore it from a backup; or move the directory away and start a new log, without the records of this one.";

/// The newest file after its valid part was synced and the rest removed.
struct Settled {
    std::size_t length = 0;
    std::uint64_t end = 0;
    std::size_t cut_bytes = 0;
};

/// How far the log was on the disk according to whole frames behind a broken one.
///
/// Pages reach the disk in any order, so such frames may be part of a torn tail; unless they say that records from
/// `number` on had been synced before them.
std::uint64_t durable_after(std::string_view data, std::size_t offset, std::uint64_t number) {
    std::uint64_t known = 0;
    while ((offset = find_mark(data, offset + 1)) != std::string_view::npos) {
        const auto frame = decode_frame(data, offset);
        if (frame && number < frame->durable && frame->durable <= frame->number) {
            known = std::max(known, frame->durable);
        }
    }
    return known;
}

Settled settle(File& file, const Path& path, std::uint64_t first, std::uint64_t durable) {
    const std::string data = file.read(0, file.size());
    if (const std::string fault = header_fault(data, first); !fault.empty()) {
        throw RecordsDamaged(path.string() + " is damaged: " + fault + "." + advice);
    }
    std::size_t offset = header_bytes;
    std::size_t unsure = data.size();
    std::uint64_t number = first;
    for (auto frame = decode_frame(data, offset); frame && frame->number == number;
         frame = decode_frame(data, offset)) {
        if (number == std::max(first, durable)) {
            unsure = offset;
        }
        offset = frame->end;
        ++number;
    }
    const std::uint64_t known = std::max(durable, durable_after(data, offset, number));
    if (number < known) {
        throw RecordsDamaged(path.string() + ", byte " + std::to_string(offset) + ": record " + std::to_string(number) +
                             " is damaged or missing, and records up to " + std::to_string(known - 1) +
                             " were acknowledged." + advice);
    }
    if (unsure < offset) {
        // After a failed sync the kernel may hold these bytes as clean though they never reached the disk.
        file.write(unsure, std::string_view(data).substr(unsure, offset - unsure));
    }
    if (offset < data.size()) {
        file.truncate(offset);
    }
    file.sync();
    return {offset, number, data.size() - offset};
}

void remove_unfinished(const Path& directory, Files& files) {
    for (const std::string& name : files.names(directory)) {
        if (name.size() >= 4 && name.compare(name.size() - 4, 4, ".tmp") == 0) {
            files.remove(directory / name);
        }
    }
    // A file may have been renamed and its directory not synced when the last writer died.
    files.sync_directory(directory);
}

}  // namespace

Recovered recover(const Path& directory, Files& files) {
    remove_unfinished(directory, files);
    std::vector<std::uint64_t> firsts = first_numbers(files.names(directory));
    const auto known = known_ends(directory, files);
    if (firsts.empty()) {
        if (known && known->durable > 0) {
            throw RecordsDamaged(directory.string() + " held " + std::to_string(known->durable) +
                                 " records and has no file of records now." + advice);
        }
        create_record_file(directory, files, 0);
        firsts = {0};
    }
    std::deque<FinishedFile> finished;
    for (std::size_t place = 0; place + 1 < firsts.size(); ++place) {
        finished.push_back({firsts[place], files.open_to_read(directory / file_name(firsts[place]))->size()});
    }
    const Path path = directory / file_name(firsts.back());
    std::unique_ptr<File> file = files.open(path);
    const Settled settled = settle(*file, path, firsts.back(), known ? known->durable : 0);
    CommittedEnd ends = tell_ends(directory, files, {settled.end, settled.end});
    const std::uint64_t lost = known && known->committed > settled.end ? known->committed - settled.end : 0;
    return {std::move(finished), std::move(file),   firsts.back(), settled.length,
            settled.end,         settled.cut_bytes, lost,          std::move(ends)};
}

std::unique_ptr<File> create_record_file(const Path& directory, Files& files, std::uint64_t first) {
    const Path aside = directory / (file_name(first) + ".tmp");
    std::unique_ptr<File> file = files.create(aside);
    file->write(0, encode_header(first));
    file->sync();
    files.rename(aside, directory / file_name(first));
    files.sync_directory(directory);
    return file;
}

}  // namespace rl4sys::records
