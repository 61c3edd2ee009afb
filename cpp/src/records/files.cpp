#include "records/files.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <memory>
#include <utility>

#include "records/errors.hpp"

namespace rl4sys::records {
namespace {

/// An open descriptor, closed with its owner.
class Descriptor {
public:
    Descriptor(const Path& path, int flags) : path_(path), number_(::open(path.c_str(), flags | O_CLOEXEC, 0600)) {
        if (number_ < 0) {
            throw FileError(errno, path.string());
        }
    }
    ~Descriptor() { ::close(number_); }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;

    int number() const { return number_; }
    [[noreturn]] void fail() const { throw FileError(errno, path_.string()); }

private:
    Path path_;
    int number_;
};

class DiskFile : public File {
public:
    DiskFile(const Path& path, int flags) : descriptor_(path, flags) {}

    std::size_t size() const override {
        struct stat status {};
        if (::fstat(descriptor_.number(), &status) != 0) {
            descriptor_.fail();
        }
        return static_cast<std::size_t>(status.st_size);
    }

    std::string read(std::size_t offset, std::size_t length) const override {
        std::string data(length, '\0');
        std::size_t done = 0;
        while (done < length) {
            const ssize_t got =
                ::pread(descriptor_.number(), data.data() + done, length - done, static_cast<off_t>(offset + done));
            if (got < 0 && errno != EINTR) {
                descriptor_.fail();
            }
            if (got == 0) {
                break;
            }
            done += got > 0 ? static_cast<std::size_t>(got) : 0;
        }
        data.resize(done);
        return data;
    }

    void write(std::size_t offset, std::string_view data) override {
        std::size_t done = 0;
        // A disk that fills up writes a part first and reports the reason only at the next attempt.
        while (done < data.size()) {
            const ssize_t put = ::pwrite(descriptor_.number(), data.data() + done, data.size() - done,
                                         static_cast<off_t>(offset + done));
            if (put < 0 && errno != EINTR) {
                descriptor_.fail();
            }
            done += put > 0 ? static_cast<std::size_t>(put) : 0;
        }
    }

    void truncate(std::size_t length) override {
        if (::ftruncate(descriptor_.number(), static_cast<off_t>(length)) != 0) {
            descriptor_.fail();
        }
    }

    void sync() override {
        if (::fdatasync(descriptor_.number()) != 0) {
            descriptor_.fail();
        }
    }

private:
    Descriptor descriptor_;
};

/// The locks of this process, by the number of the file plus one; 0 is free.
std::array<std::atomic<int>, 64> held_locks{};

/// A child that kept its copy of a lock would hold it for as long as it runs, also when the parent is gone.
void close_locks() {
    for (std::atomic<int>& held : held_locks) {
        if (const int number = held.exchange(0); number != 0) {
            ::close(number - 1);
        }
    }
}

[[maybe_unused]] const int registered = ::pthread_atfork(nullptr, nullptr, close_locks);

/// An flock: the kernel releases it when the process ends for any reason. Forked children do not have it.
class DiskLock : public Lock {
public:
    explicit DiskLock(const Path& path) : descriptor_(std::make_unique<Descriptor>(path, O_RDWR | O_CREAT)) {
        if (::flock(descriptor_->number(), LOCK_EX | LOCK_NB) != 0) {
            if (errno != EWOULDBLOCK) {
                descriptor_->fail();
            }
            throw LogInUse(path.parent_path().string() +
                           " is open for writing elsewhere. Close that writer, or choose another directory.");
        }
        for (std::atomic<int>& held : held_locks) {
            int none = 0;
            if (held.compare_exchange_strong(none, descriptor_->number() + 1)) {
                held_ = &held;
                break;
            }
        }
    }
    ~DiskLock() override {
        if (held_ != nullptr && held_->exchange(0) == 0) {
            // Closed in this child already: its number may be that of another file by now.
            static_cast<void>(descriptor_.release());
        }
    }
    DiskLock(const DiskLock&) = delete;
    DiskLock& operator=(const DiskLock&) = delete;

private:
    std::unique_ptr<Descriptor> descriptor_;
    std::atomic<int>* held_ = nullptr;
};

}  // namespace

std::vector<std::string> DiskFiles::names(const Path& directory) const {
    std::vector<std::string> found;
    std::error_code error;
    for (std::filesystem::directory_iterator entry(directory, error), end; !error && entry != end;
         entry.increment(error)) {
        found.push_back(entry->path().filename().string());
    }
    if (error) {
        throw FileError(error.value(), directory.string());
    }
    return found;
}

void DiskFiles::make_directory(const Path& directory) {
    if (directory.empty() || std::filesystem::is_directory(directory)) {
        return;
    }
    make_directory(directory.parent_path());
    if (::mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) {
        throw FileError(errno, directory.string());
    }
    sync_directory(directory.parent_path());
}

std::unique_ptr<File> DiskFiles::create(const Path& path) {
    return std::make_unique<DiskFile>(path, O_RDWR | O_CREAT | O_TRUNC);
}

std::unique_ptr<File> DiskFiles::open(const Path& path) {
    return std::make_unique<DiskFile>(path, O_RDWR);
}

std::unique_ptr<File> DiskFiles::open_to_read(const Path& path) const {
    return std::make_unique<DiskFile>(path, O_RDONLY);
}

void DiskFiles::rename(const Path& source, const Path& target) {
    if (::rename(source.c_str(), target.c_str()) != 0) {
        throw FileError(errno, source.string());
    }
}

void DiskFiles::remove(const Path& path) {
    if (::unlink(path.c_str()) != 0) {
        throw FileError(errno, path.string());
    }
}

void DiskFiles::sync_directory(const Path& directory) {
    const Path named = directory.empty() ? Path(".") : directory;
    const Descriptor descriptor(named, O_RDONLY | O_DIRECTORY);
    if (::fsync(descriptor.number()) != 0) {
        descriptor.fail();
    }
}

std::unique_ptr<Lock> DiskFiles::lock(const Path& path) {
    return std::make_unique<DiskLock>(path);
}

void replace_file(const Path& path, std::string_view contents) {
    DiskFiles files;
    files.make_directory(path.parent_path());
    const Path aside = path.parent_path() / ("." + path.filename().string() + ".tmp");
    try {
        const auto file = files.create(aside);
        file->write(0, contents);
        file->sync();
        files.rename(aside, path);
    } catch (const FileError&) {
        // A half-written file would only take space, which may be what is missing.
        std::error_code ignored;
        std::filesystem::remove(aside, ignored);
        throw;
    }
    files.sync_directory(path.parent_path());
}

}  // namespace rl4sys::records
