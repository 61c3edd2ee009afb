/// The token that a client sends with every call. A token file can be replaced while the client runs.
#pragma once

#include <filesystem>
#include <fstream>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace rl4sys::client {

/// A token; its file is read again when it changes.
class Token {
public:
    Token(std::string text, std::optional<std::filesystem::path> file)
        : text_(std::move(text)), file_(std::move(file)) {}

    /// The present token; the previous one while the file is missing or unreadable.
    std::string current() {
        const std::lock_guard lock(mutex_);
        if (!file_) {
            return text_;
        }
        std::error_code failed;
        const auto written = std::filesystem::last_write_time(*file_, failed);
        if (!failed && written != written_) {
            std::ifstream file(*file_);
            if (std::string line; std::getline(file, line)) {
                const std::size_t end = line.find_last_not_of(" \t\r");
                const std::size_t begin = line.find_first_not_of(" \t");
                text_ = end == std::string::npos ? "" : line.substr(begin, end + 1 - begin);
                written_ = written;
            }
        }
        return text_;
    }

private:
    std::mutex mutex_;
    std::string text_;
    std::optional<std::filesystem::path> file_;
    std::filesystem::file_time_type written_;
};

}  // namespace rl4sys::client
