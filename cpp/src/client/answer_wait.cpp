#include "client/answer_wait.hpp"

#include <utility>

#include "rl4sys/log.hpp"

namespace rl4sys::client {

AnswerWait::AnswerWait(RandomSource rng, Clock clock, double timeout)
    : backoff_(std::move(rng)), clock_(std::move(clock)), timeout_(timeout) {}

bool AnswerWait::may_ask() {
    const std::lock_guard lock(mutex_);
    if (!not_before_) {
        return true;
    }
    const double now = clock_();
    if (now < *not_before_) {
        return false;
    }
    not_before_ = now + 2.0 * timeout_;
    return true;
}

void AnswerWait::answered() {
    {
        const std::lock_guard lock(mutex_);
        if (!not_before_) {
            return;
        }
        not_before_.reset();
        backoff_.succeeded();
    }
    log(LogLevel::Info, "The server decides again.");
}

void AnswerWait::failed(const std::string& problem, double asked) {
    bool is_new = false;
    {
        const std::lock_guard lock(mutex_);
        is_new = !not_before_;
        not_before_ = clock_() + backoff_.failed(asked);
    }
    if (is_new) {
        log(LogLevel::Warning, "The server does not decide: " + problem + " The fallback decides until it answers.");
    }
}

}  // namespace rl4sys::client
