/// Whether to ask the server for a decision, so that one that is away costs few decisions their deadline.
#pragma once

#include <mutex>
#include <optional>
#include <string>

#include "client/clock.hpp"
#include "client/retries.hpp"

namespace rl4sys::client {

/// Asks all the time while the server answers, and after a pause once it did not. Thread-safe.
class AnswerWait {
public:
    /// `timeout` is the deadline of one question, in seconds.
    AnswerWait(RandomSource rng, Clock clock, double timeout);

    /// Whether to ask now. After a pause one thread asks, and the others wait for what it finds.
    bool may_ask();
    /// Note an answer.
    void answered();
    /// Note that there was none; `asked` is the pause in seconds that the server asked for.
    void failed(const std::string& problem, double asked = 0.0);

private:
    std::mutex mutex_;
    Backoff backoff_;
    Clock clock_;
    double timeout_;
    std::optional<double> not_before_;  ///< When to ask next; nothing while the server answers.
};

}  // namespace rl4sys::client
