/// @file
/// Gymnasium environments in a Python process, driven over a pipe; gym_pipe.py is the other end.
#pragma once

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

namespace examples {

/// The reply of one simulator, as on the pipe.
struct Landing {
    float reward;
    /// 0: the episode continues; 1: terminated; 2: truncated.
    float ending;
    std::array<float, 8> observed;
    /// To act on: the same, or the first observation of the next episode.
    std::array<float, 8> next;
};
static_assert(sizeof(Landing) == 18 * sizeof(float));

class Simulators {
public:
    /// Starts `python script count seed`. @throws std::system_error
    Simulators(const std::string& python, const std::string& script, std::size_t count, std::uint64_t seed)
        : landings_(count), actions_(count) {
        int actions[2], answers[2];
        check(::pipe2(actions, O_CLOEXEC) == 0 && ::pipe2(answers, O_CLOEXEC) == 0 ? 0 : errno, "make a pipe");
        // A simulator that has exited gives an error of `write` instead of ending this program.
        ::signal(SIGPIPE, SIG_IGN);
        std::vector<std::string> words{python, script, std::to_string(count), std::to_string(seed)};
        std::vector<char*> command;
        for (std::string& word : words) {
            command.push_back(word.data());
        }
        command.push_back(nullptr);
        posix_spawn_file_actions_t files;
        ::posix_spawn_file_actions_init(&files);
        ::posix_spawn_file_actions_adddup2(&files, actions[0], STDIN_FILENO);
        ::posix_spawn_file_actions_adddup2(&files, answers[1], STDOUT_FILENO);
        const int error = ::posix_spawnp(&process_, python.c_str(), &files, nullptr, command.data(), environ);
        ::posix_spawn_file_actions_destroy(&files);
        ::close(actions[0]);
        ::close(answers[1]);
        to_ = actions[1];
        from_ = answers[0];
        check(error, "start " + python);
        receive();
    }

    Simulators(const Simulators&) = delete;
    Simulators& operator=(const Simulators&) = delete;

    /// The simulators end when their input does.
    ~Simulators() {
        ::close(to_);
        ::close(from_);
        ::waitpid(process_, nullptr, 0);
    }

    std::vector<std::uint8_t>& actions() noexcept { return actions_; }
    const std::vector<Landing>& landings() const noexcept { return landings_; }

    /// Sends `actions()` and waits for the replies.
    void step() {
        const ssize_t written = ::write(to_, actions_.data(), actions_.size());
        check(written == static_cast<ssize_t>(actions_.size()) ? 0 : EPIPE, "reach the simulators");
        receive();
    }

private:
    void receive() {
        char* place = reinterpret_cast<char*>(landings_.data());
        std::size_t missing = landings_.size() * sizeof(Landing);
        while (missing > 0) {
            const ssize_t size = ::read(from_, place, missing);
            if (size < 0 && errno == EINTR) {
                continue;
            }
            if (size <= 0) {
                throw std::runtime_error(
                    "The simulators ended. Is Gymnasium there? Choose a Python that has it with --python.");
            }
            place += size;
            missing -= static_cast<std::size_t>(size);
        }
    }

    static void check(int error, const std::string& what) {
        if (error != 0) {
            throw std::system_error(error, std::generic_category(), "Cannot " + what);
        }
    }

    pid_t process_ = -1;
    int to_ = -1;
    int from_ = -1;
    std::vector<Landing> landings_;
    std::vector<std::uint8_t> actions_;
};

}  // namespace examples
