#include "client/grpc_library.hpp"

#include <grpc/grpc.h>
#include <grpc/support/log.h>
#include <grpcpp/version_info.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include "client/fork_gate.hpp"
#include "client/forks.hpp"
#include "client/grpc_threads.hpp"
#include "client/signals_blocked.hpp"
#include "rl4sys/log.hpp"

namespace rl4sys::client {
namespace {

constexpr const char* poll_strategy = "GRPC_POLL_STRATEGY";
// Parts of gRPC may end some milliseconds after the rest.
constexpr std::chrono::milliseconds longest_shutdown{500};

std::mutex mutex;  // Held while the process forks.
int users = 0;
bool is_registered = false;
bool can_be_left = false;  // Whether a fork can do without gRPC.
bool is_interrupted = false;
bool is_left = false;  // Whether the fork under way does.
std::optional<SignalsBlocked> blocked;
std::atomic<bool> is_inherited = false;

#if GRPC_CPP_VERSION_MAJOR == 1 && GRPC_CPP_VERSION_MINOR < 65
/// Send what gRPC logs to the client's log.
void take_messages() {
    gpr_set_log_function([](gpr_log_func_args* message) {
        // The client says itself what went wrong; this is for those who look closer.
        log(LogLevel::Debug, "gRPC: " + std::string(message->message));
    });
}
#else
/// Later releases log with absl, which belongs to the program.
void take_messages() {
    ::setenv("GRPC_VERBOSITY", "NONE", 0);
}
#endif

/// Whether nothing of gRPC is left, neither in use nor a thread that is about to end: it may hold a lock.
bool is_down() {
    if (grpc_is_initialized() != 0) {
        return false;
    }
    std::error_code failed;
    const std::filesystem::directory_iterator tasks("/proc/self/task", failed);
    return !failed && std::none_of(begin(tasks), end(tasks), [](const auto& task) {
        std::string name;
        std::getline(std::ifstream(task.path() / "comm"), name);
        return is_grpc_thread(name);
    });
}

/// Shut gRPC down: false if it stays, such as for another part of the program.
bool shut_down() {
    grpc_shutdown_blocking();
    const auto deadline = std::chrono::steady_clock::now() + longest_shutdown;
    while (!is_down()) {
        if (std::chrono::steady_clock::now() > deadline) {
            return false;
        }
        std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    return true;
}

void before_fork() {
    mutex.lock();
    is_left = false;
    if (users > 0 && can_be_left) {
        blocked.emplace();
        is_interrupted = fork_gate().close();
        is_left = is_interrupted && shut_down();
    }
}

void after_fork_in_parent() {
    if (users > 0 && can_be_left) {
        if (is_interrupted) {
            grpc_init();
        }
        fork_gate().open();
        blocked.reset();
    }
    mutex.unlock();
}

void after_fork_in_child() {
    if (users > 0) {
        is_inherited = !is_left;
        replace_fork_gate();
        blocked.reset();
        users = 0;
    }
    mutex.unlock();
}

}  // namespace

GrpcLibrary::GrpcLibrary() : forks_(forks()) {
    const std::lock_guard lock(mutex);
    const SignalsBlocked for_its_threads;
    if (users++ > 0) {
        return;
    }
    if (grpc_is_initialized() == 0) {
        // With epoll, a child would share a descriptor with its parent, which gRPC never closes: both would take each
        // other's events.
        ::setenv(poll_strategy, "poll", 0);
        can_be_left = std::string_view(std::getenv(poll_strategy)) == "poll";
        take_messages();
    }
    grpc_init();
    if (!std::exchange(is_registered, true)) {
        ::pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
    }
}

GrpcLibrary::~GrpcLibrary() {
    if (forks_ != forks()) {
        return;
    }
    const std::lock_guard lock(mutex);
    if (--users == 0) {
        grpc_shutdown_blocking();
    }
}

bool inherits_grpc() noexcept {
    return is_inherited;
}

std::string explain_inherited_grpc() {
    return "Process " + std::to_string(::getpid()) +
           " was forked while its parent used gRPC, which cannot be used here. Fork first and connect then, in each "
           "process, or start the child with exec or posix_spawn.";
}

}  // namespace rl4sys::client
