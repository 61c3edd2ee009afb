#include "client/process_usage.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include "client/clock.hpp"
#include "client/grpc_threads.hpp"

namespace rl4sys::client {
namespace {

bool is_background(const std::string& name) {
    return name.rfind("rl4sys-", 0) == 0 || is_grpc_thread(name);
}

double seconds_of(const timeval& time) {
    constexpr double microseconds = 1e6;
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / microseconds;
}

/// Seconds that the background threads ran; those that have ended meanwhile count no more.
double background_seconds() {
    constexpr double nanoseconds = 1e9;
    double sum = 0.0;
    std::error_code failed;
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", failed)) {
        std::string name;
        std::getline(std::ifstream(task.path() / "comm"), name);
        double ran = 0.0;
        if (is_background(name) && std::ifstream(task.path() / "schedstat") >> ran) {
            sum += ran / nanoseconds;
        }
    }
    return sum;
}

}  // namespace

ProcessUsage ProcessUsage::now() {
    ProcessUsage usage;
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    usage.cpu = seconds_of(used.ru_utime) + seconds_of(used.ru_stime);
    usage.background_cpu = std::min(background_seconds(), usage.cpu);
    usage.waits = static_cast<std::uint64_t>(used.ru_nvcsw);
    usage.preemptions = static_cast<std::uint64_t>(used.ru_nivcsw);
    std::uint64_t size = 0;
    std::uint64_t resident = 0;
    if (std::ifstream("/proc/self/statm") >> size >> resident) {
        usage.memory = resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    }
    usage.seconds = steady_seconds();
    return usage;
}

}  // namespace rl4sys::client
