/// Keeps the program's signals away from threads that the client starts.
#pragma once

#include <pthread.h>
#include <signal.h>

namespace rl4sys::client {

/// Blocks all signals in this thread, which new threads inherit: the handlers of a program are for its own threads.
class SignalsBlocked {
public:
    SignalsBlocked() {
        sigset_t all;
        ::sigfillset(&all);
        ::pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    SignalsBlocked(const SignalsBlocked&) = delete;
    SignalsBlocked& operator=(const SignalsBlocked&) = delete;

private:
    sigset_t before_{};
};

}  // namespace rl4sys::client
