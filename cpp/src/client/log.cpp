#include "rl4sys/log.hpp"

#include <cstdio>
#include <memory>
#include <mutex>
#include <utility>

namespace rl4sys {
namespace {

struct Listener {
    std::mutex mutex;
    LogSink sink;
    LogLevel least = LogLevel::Info;
};

/// Never destroyed: a background thread may log while the process ends.
Listener& listener() {
    static auto* const only = std::make_unique<Listener>().release();
    return *only;
}

const char* name_of(LogLevel level) {
    switch (level) {
        case LogLevel::Debug: return "debug";
        case LogLevel::Info: return "info";
        case LogLevel::Warning: return "warning";
        case LogLevel::Error: return "error";
    }
    return "";
}

}  // namespace

void log_to(LogSink sink, LogLevel least) {
    const std::lock_guard lock(listener().mutex);
    listener().sink = std::move(sink);
    listener().least = least;
}

LogSink standard_error() {
    return [](LogLevel level, std::string_view message) {
        std::fprintf(stderr, "rl4sys %s: %.*s\n", name_of(level), static_cast<int>(message.size()), message.data());
    };
}

void log(LogLevel level, std::string_view message) {
    const std::lock_guard lock(listener().mutex);
    if (listener().sink && level >= listener().least) {
        listener().sink(level, message);
    }
}

}  // namespace rl4sys
