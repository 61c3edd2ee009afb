#include "records/record_log.hpp"

#include <utility>

#include "records/frames.hpp"
#include "rl4sys/log.hpp"

namespace rl4sys::records {
namespace {

constexpr const char* kLocname = "lock";

}  // namespace

RecordLog::RecordLog(Path directory, std::size_t file_bytes, std::shared_ptr<Files> files)
    : directory_(std::move(directory)), file_bytes_(file_bytes), files_(std::move(files)) {
    files_->make_directory(directory_);
    lock_ = files_->lock(directory_ / kLocname);
    Recovered recovered = recover(directory_, *files_);
    finished_ = std::move(recovered.finished);
    file_ = std::move(recovered.file);
    ends_.emplace(std::move(recovered.ends));
    file_first_ = recovered.first;
    length_ = recovered.length;
    end_ = durable_ = recovered.end;
    if (recovered.lost > 0) {
        log(LogLevel::Warning, directory_.string() + " has lost its last " + std::to_string(recovered.lost) +
                                   " records, which were not on the disk yet: the machine stopped, or they are "
                                   "damaged.");
    }
}

RecordLog::~RecordLog() {
    try {
        close();
    } catch (const LogBroken&) {  // NOLINT(bugprone-empty-catch): call close() to see the error.
    }
}

std::size_t RecordLog::size() const {
    std::size_t bytes = length_;
    for (const FinishedFile& file : finished_) {
        bytes += file.bytes;
    }
    return bytes;
}

std::uint64_t RecordLog::append(const std::vector<std::string>& payloads) {
    require_working();
    if (length_ >= file_bytes_ && end_ > file_first_) {
        rotate();
    }
    std::string data;
    std::uint64_t number = end_;
    for (const std::string& payload : payloads) {
        append_frame(data, number++, durable_, payload);
    }
    try {
        file_->write(length_, data);
    } catch (const FileError& error) {
        if (!error.no_space()) {
            break_with(error);
        }
        take_back();
        throw full();
    }
    length_ += data.size();
    const std::uint64_t first = std::exchange(end_, number);
    publish();
    return first;
}

void RecordLog::prune(std::uint64_t before) {
    require_working();
    bool removed = false;
    try {
        // Oldest first, so that a crash in between leaves no gap.
        while (!finished_.empty() && (finished_.size() > 1 ? finished_[1].first : file_first_) <= before) {
            files_->remove(directory_ / file_name(finished_.front().first));
            finished_.pop_front();
            removed = true;
        }
        if (removed) {
            files_->sync_directory(directory_);
        }
    } catch (const FileError& error) {
        break_with(error);
    }
}

void RecordLog::read_all(const std::function<void(std::uint64_t, std::string_view)>& take) const {
    std::vector<std::uint64_t> firsts;
    for (const FinishedFile& file : finished_) {
        firsts.push_back(file.first);
    }
    firsts.push_back(file_first_);
    std::uint64_t number = oldest();
    for (const std::uint64_t first : firsts) {
        const Path path = directory_ / file_name(first);
        const auto file = files_->open_to_read(path);
        const std::string data = file->read(0, file->size());
        const std::string fault = header_fault(data, number);
        std::size_t offset = header_bytes;
        while (fault.empty() && offset < data.size()) {
            const auto frame = decode_frame(data, offset);
            if (!frame || frame->number != number) {
                break;
            }
            take(number++, std::string_view(data).substr(frame->begin, frame->end - frame->begin));
            offset = frame->end;
        }
        if (!fault.empty() || offset < data.size()) {
            throw RecordsDamaged(path.string() + ", byte " + std::to_string(offset) + ": record " +
                                 std::to_string(number) + " is damaged or missing" +
                                 (fault.empty() ? "" : " (" + fault + ")") +
                                 ". It was acknowledged, so it is not skipped. Restore the file from a backup, or move "
                                 "the directory away.");
        }
    }
    if (number != end_) {
        throw RecordsDamaged(directory_.string() + ": record " + std::to_string(number) +
                             " is missing with its file. Restore it from a backup, or move the directory away.");
    }
}

void RecordLog::close() {
    if (std::exchange(closed_, true)) {
        return;
    }
    std::optional<std::string> problem;
    if (!broken_) {
        try {
            ends_->sync();
        } catch (const FileError& error) {
            problem = error.what();
        }
    }
    file_.reset();
    ends_.reset();
    lock_.reset();
    if (problem) {
        throw LogBroken(directory_.string() + " could not be synced when it was closed: " + *problem + ".");
    }
}

void RecordLog::rotate() {
    // The finished file is synced first, with any durability: only the last file can be torn.
    try {
        file_->sync();
        durable_ = end_;
        ends_->publish({end_, durable_});
        ends_->sync();
    } catch (const FileError& error) {
        break_with(error);
    }
    std::unique_ptr<File> next;
    try {
        next = create_record_file(directory_, *files_, end_);
    } catch (const FileError& error) {
        if (!error.no_space()) {
            break_with(error);
        }
        // Nothing refers to the new file yet: the next attempt rewrites it from its first byte.
        throw full();
    }
    finished_.push_back({file_first_, length_});
    file_ = std::move(next);
    file_first_ = end_;
    length_ = header_bytes;
}

void RecordLog::publish() {
    try {
        ends_->publish({end_, durable_});
    } catch (const FileError& error) {
        break_with(error);
    }
}

void RecordLog::take_back() {
    try {
        file_->truncate(length_);
    } catch (const FileError& error) {
        break_with(error);
    }
}

void RecordLog::require_working() const {
    if (closed_) {
        throw LogBroken(directory_.string() + " was closed. Open it again to append.");
    }
    if (broken_) {
        throw LogBroken(*broken_);
    }
}

void RecordLog::break_with(const FileError& cause) {
    broken_ = directory_.string() + " accepts no more records: " + cause.what() +
              ". Acknowledged records are safe. Check the disk, then start again, which verifies its contents.";
    throw LogBroken(*broken_);
}

LogFull RecordLog::full() const {
    return LogFull(directory_.string() + " has no space for more records. Nothing was lost; free space on its disk.");
}

}  // namespace rl4sys::records
