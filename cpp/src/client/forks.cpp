#include "client/forks.hpp"

#include <pthread.h>
#include <unistd.h>

#include <atomic>

namespace rl4sys::client {
namespace {

std::atomic<std::uint64_t> count = 0;

void count_one() {
    count.fetch_add(1, std::memory_order_relaxed);
}

[[maybe_unused]] const int registered = ::pthread_atfork(nullptr, nullptr, count_one);

}  // namespace

std::uint64_t forks() noexcept {
    return count.load(std::memory_order_relaxed);
}

std::string explain_fork() {
    return "This agent was connected in the parent of process " + std::to_string(::getpid()) +
           "; its background threads and its connection stayed there. Call rl4sys::connect after the fork, in each "
           "process, with a client_id of its own.";
}

}  // namespace rl4sys::client
