#include "client/forks.hpp"

#include <pthread.h>
#include <unistd.h>

#include <atomic>

namespace rl4sys::client {
namespace {

std::atomic<std::uint64_t> count = 0;
std::atomic<bool> uses_grpc = false;
std::atomic<bool> inherited_grpc = false;

void count_one() {
    count.fetch_add(1, std::memory_order_relaxed);
    inherited_grpc = uses_grpc.load();
}

[[maybe_unused]] const int registered = ::pthread_atfork(nullptr, nullptr, count_one);

}  // namespace

std::uint64_t forks() noexcept {
    return count.load(std::memory_order_relaxed);
}

void note_grpc() noexcept {
    uses_grpc = true;
}

bool inherits_grpc() noexcept {
    return inherited_grpc;
}

std::string explain_inherited_grpc() {
    return "Process " + std::to_string(::getpid()) +
           " was forked from one that had connected before. gRPC works in only one of them, and using it in both can "
           "end both. Fork first and connect then, in each process, or start the child with exec or posix_spawn.";
}

std::string explain_fork() {
    return "This agent was connected in the parent of process " + std::to_string(::getpid()) +
           "; its background threads and its connection stayed there. Call rl4sys::connect after the fork, in each "
           "process, with a client_id of its own.";
}

}  // namespace rl4sys::client
