"""A disk that is really full, and a server that is asked to stop in the middle of its work."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from os import geteuid
from pathlib import Path

import pytest
from tests.faults.processes import Client, Server
from tests.faults.reference_fold import stored
from tests.faults.test_kill_storm import SEEN, TIMEOUT
from tests.server.clients import PPO, ScriptedClient, acknowledged, eventually, join_request

from rl4sys.wire import FailureReason
from rl4sys.wire.calls import CallFailed, Code
from rl4sys.wire.generated import status_pb2

SPACE = 3 << 20
DRAIN_SECONDS = 10.0


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    if geteuid() != 0:
        pytest.skip("A small file system needs root; tests/server/learners/test_inbox.py simulates one.")
    place = tmp_path / "small"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={SPACE}", "tmpfs", str(place)], check=False, capture_output=True
    )
    if mounted.returncode != 0:
        pytest.skip(f"A small file system is not possible here: {mounted.stderr.decode().strip()}")
    yield place
    subprocess.run(["umount", str(place)], check=True)


@pytest.mark.slow
def test_a_full_disk_stops_acknowledgements_with_a_reason_until_there_is_space(small_disk: Path) -> None:
    ballast = small_disk / "ballast"
    server = Server(small_disk)
    told: set[int] = set()
    try:
        server.start()
        client = ScriptedClient(server.transport, join_request("a", PPO))
        ballast.write_bytes(bytes(SPACE // 2))
        failed: CallFailed | None = None
        sequence = 0
        while failed is None and sequence < 20_000:
            try:
                told |= set(acknowledged(client.push(range(sequence, sequence + 100), steps=32)))
                sequence += 100
            except CallFailed as error:
                failed = error
        assert failed is not None
        assert (failed.code, failed.failure.reason) == (Code.UNAVAILABLE, FailureReason.STORAGE)
        state = server.transport.status(status_pb2.StatusRequest(), 10.0).server.state
        assert state == status_pb2.SERVER_STATE_STORAGE_FAILED
        ballast.unlink()
        # The same process continues by itself.
        eventually(lambda: _push(client, range(sequence, sequence + 100), told), TIMEOUT)
        assert server.terminate(30.0) == 0
    finally:
        server.close()
    found = [entry.sequence for entry in stored(server.data / "learners" / "a" / "log")]
    assert told <= set(found)
    assert len(found) == len(set(found))


def _push(client: ScriptedClient, sequences: range, told: set[int]) -> bool:
    try:
        told |= set(acknowledged(client.push(sequences, steps=32)))
    except CallFailed:
        return False
    return True


@pytest.mark.slow
def test_a_server_under_load_drains_in_time(tmp_path: Path) -> None:
    server = Server(tmp_path)
    clients = [Client(tmp_path, server.address, f"busy{n}", "fleet", pause=0.005) for n in range(2)]
    try:
        server.start()
        ScriptedClient(server.transport, join_request("maker", PPO, "fleet", SEEN))
        for client in clients:
            client.start()
        eventually(lambda: all(client.told_bytes > 500 for client in clients), TIMEOUT)
        asked = time.monotonic()
        # Waiting longer than promised fails here.
        assert server.terminate(DRAIN_SECONDS + 5.0) == 0
        assert time.monotonic() - asked < DRAIN_SECONDS + 5.0
    finally:
        for client in clients:
            client.close()
        server.close()
    assert sorted((server.data / "learners" / "shared~fleet" / "checkpoints").glob("0*"))
    names = {(e.client, e.epoch, e.sequence) for e in stored(server.data / "learners" / "shared~fleet" / "log")}
    for client in clients:
        assert {(client.name, *key) for key in client.told()} <= names
