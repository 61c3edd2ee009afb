#include "rl4sys/log.hpp"

#include <pthread.h>

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

thread_local bool is_logging = false;

// A child must not find the lock of another thread. A sink that forks has it itself.
void before_fork() {
    if (!is_logging) {
        listener().mutex.lock();
    }
}

void after_fork() {
    if (!is_logging) {
        listener().mutex.unlock();
    }
}

[[maybe_unused]] const int registered = ::pthread_atfork(before_fork, after_fork, after_fork);

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
        is_logging = true;
        listener().sink(level, message);
        is_logging = false;
    }
}

}  // namespace rl4sys
