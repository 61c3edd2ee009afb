/// Turns sealed drafts into the bytes that are kept and sent, in a thread of its own.
#pragma once

#include <memory>

#include "client/courier.hpp"
#include "client/handoff.hpp"

namespace rl4sys::client {

/// Stands between acting threads, which must not wait for a disk, and the outbox, which may be on one.
class Packer {
public:
    Packer(Handoff& handoff, Courier& courier, Tally& tally) : handoff_(handoff), courier_(courier), tally_(tally) {}

    /// Pack until the handoff is closed and empty.
    void run();

private:
    void pack(const Draft& draft);

    Handoff& handoff_;
    Courier& courier_;
    Tally& tally_;
};

}  // namespace rl4sys::client
