#include "records/committed_end.hpp"

#include <string>
#include <utility>

#include "records/bytes.hpp"
#include "records/crc32.hpp"
#include "records/errors.hpp"

namespace rl4sys::records {
namespace {

constexpr const char* file_name = "committed";
constexpr std::string_view magic = "RL4SCEND";
constexpr std::size_t body_bytes = 24;
constexpr std::size_t total_bytes = body_bytes + 4;

std::string encode(const Ends& ends) {
    std::string body(magic);
    put64(body, ends.committed);
    put64(body, ends.durable);
    put32(body, crc32(body));
    return body;
}

std::unique_ptr<File> create(const Path& directory, Files& files, const Ends& ends) {
    const Path aside = directory / "committed.tmp";
    std::unique_ptr<File> file = files.create(aside);
    file->write(0, encode(ends));
    file->sync();
    files.rename(aside, directory / file_name);
    files.sync_directory(directory);
    return file;
}

}  // namespace

CommittedEnd::CommittedEnd(std::unique_ptr<File> file) : file_(std::move(file)) {}

void CommittedEnd::publish(const Ends& ends) {
    file_->write(0, encode(ends));
}

void CommittedEnd::sync() {
    file_->sync();
}

std::optional<Ends> known_ends(const Path& directory, const Files& files) {
    std::string data;
    try {
        data = files.open_to_read(directory / file_name)->read(0, total_bytes);
    } catch (const FileError& error) {
        if (error.not_found()) {
            return std::nullopt;
        }
        throw;
    }
    if (data.size() < total_bytes || get32(data, body_bytes) != crc32(std::string_view(data).substr(0, body_bytes)) ||
        data.compare(0, magic.size(), magic) != 0) {
        return std::nullopt;
    }
    return Ends{get64(data, 8), get64(data, 16)};
}

CommittedEnd tell_ends(const Path& directory, Files& files, const Ends& ends) {
    std::unique_ptr<File> file;
    try {
        file = files.open(directory / file_name);
    } catch (const FileError& error) {
        if (!error.not_found()) {
            throw;
        }
        return CommittedEnd(create(directory, files, ends));
    }
    CommittedEnd committed(std::move(file));
    committed.publish(ends);
    return committed;
}

}  // namespace rl4sys::records
