/// The few file operations that records need: on the real disk here, with simulated failures in the tests.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace rl4sys::records {

using Path = std::filesystem::path;

/// One open file, addressed by byte offsets; closing it syncs nothing. Every method throws `FileError`.
class File {
public:
    virtual ~File() = default;
    virtual std::size_t size() const = 0;
    /// Up to `length` bytes from `offset`; fewer only at the end of the file.
    virtual std::string read(std::size_t offset, std::size_t length) const = 0;
    /// Hand all of `data` to the operating system. After a failure any part of it may have been written.
    virtual void write(std::size_t offset, std::string_view data) = 0;
    virtual void truncate(std::size_t length) = 0;
    /// Wait until contents and length are on the disk.
    virtual void sync() = 0;
};

/// The lock of a log's writer; it ends with this object or with the process.
class Lock {
public:
    virtual ~Lock() = default;
};

/// A file system.
class Files {
public:
    virtual ~Files() = default;
    virtual std::vector<std::string> names(const Path& directory) const = 0;
    /// Create a directory, durably, with its parents; one that exists is left as it is.
    virtual void make_directory(const Path& directory) = 0;
    /// An empty file to read and write, in place of any older one.
    virtual std::unique_ptr<File> create(const Path& path) = 0;
    virtual std::unique_ptr<File> open(const Path& path) = 0;
    virtual std::unique_ptr<File> open_to_read(const Path& path) const = 0;
    virtual void rename(const Path& source, const Path& target) = 0;
    virtual void remove(const Path& path) = 0;
    /// Wait until the names in a directory are on the disk.
    virtual void sync_directory(const Path& directory) = 0;
    /// Become the only writer, or throw `LogInUse`.
    virtual std::unique_ptr<Lock> lock(const Path& path) = 0;
};

/// Files on the real disk, readable by their owner only.
class DiskFiles : public Files {
public:
    std::vector<std::string> names(const Path& directory) const override;
    void make_directory(const Path& directory) override;
    std::unique_ptr<File> create(const Path& path) override;
    std::unique_ptr<File> open(const Path& path) override;
    std::unique_ptr<File> open_to_read(const Path& path) const override;
    void rename(const Path& source, const Path& target) override;
    void remove(const Path& path) override;
    void sync_directory(const Path& directory) override;
    std::unique_ptr<Lock> lock(const Path& path) override;
};

/// Replace a file on the real disk in one step, durably: readers see either the old contents or the new ones.
void replace_file(const Path& path, std::string_view contents);

}  // namespace rl4sys::records
