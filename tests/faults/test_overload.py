"""A producer far faster than its learner: memory stays bounded, and what does not fit is refused and counted."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.faults.processes import Client, Server
from tests.faults.reference_fold import stored
from tests.faults.test_kill_storm import SEEN, TIMEOUT
from tests.server.clients import PPO, ScriptedClient, eventually, join_request
from tests.storms import scaled

from rl4sys.wire.generated import status_pb2

SLOW = {"algorithm": {"epochs": 300, "minibatch_size": 16}, "buffer": {"size": 32}, "checkpoint_frequency": 200_000}
INBOX_BYTES = 1 << 20
OUTBOX_BYTES = 1 << 20
MORE = 48 << 20
"""Growth of a process beyond its queues: allocators keep some memory, and interpreters warm up."""


def resident(process: int) -> int:
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


@pytest.mark.slow
def test_a_producer_that_is_too_fast_does_not_fill_memory(tmp_path: Path, tally: Callable[[str, int], None]) -> None:
    seconds = scaled(20, 3_600)
    tally("seconds of a producer that is far too fast", seconds)
    config = tmp_path / "server.yaml"
    config.write_text(f"limits:\n  inbox_bytes: {INBOX_BYTES}\n")
    server = Server(tmp_path, "--config", str(config))
    client = Client(tmp_path, server.address, "fast", "fleet", pause=0.0, outbox_bytes=OUTBOX_BYTES)
    try:
        server.start()
        ScriptedClient(server.transport, join_request("maker", (PPO[0], PPO[1] | SLOW), "fleet", SEEN))
        client.start()
        eventually(lambda: delayed(server) > 0, TIMEOUT)
        processes = [server.process.pid, *server.workers(), client.process.pid]
        before = {process: resident(process) for process in processes}
        most = dict(before)
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            time.sleep(0.1)
            most = {process: max(most[process], resident(process)) for process in processes}
        status = server.learner("shared~fleet")
        health = client.finish(flush=0.0)
        assert server.terminate(30.0) == 0
    finally:
        client.close()
        server.close()
    for process in processes:
        assert most[process] - before[process] < INBOX_BYTES + 2 * OUTBOX_BYTES + MORE
    assert status.queued_bytes <= 2 * INBOX_BYTES
    assert status.learned_steps * 10 < health["made"], "the learner was not ten times slower"
    names = {(e.epoch, e.sequence) for e in stored(server.data / "learners" / "shared~fleet" / "log")}
    assert client.told() <= names, "acknowledged and lost"
    # Every segment is on the server, in the outbox, or counted as dropped.
    assert health["drops"].keys() == {"overflow_oldest"}
    assert health["acknowledged"] <= len(names)


def delayed(server: Server) -> int:
    clients = server.transport.status(status_pb2.StatusRequest(), 10.0).clients
    return sum(client.delayed_pushes for client in clients)
