"""kill -9 of server, worker and client at random times: nothing is lost, repeated, silently dropped or
changed, no learner is given up, and no client ever acts with an older version than before.
"""

from __future__ import annotations

import os
import random
import signal
import threading
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tests.faults.processes import PER_START, Client, Server
from tests.faults.reference_fold import digest_of_newest, folded_without_faults, stored, stored_records
from tests.faults.storming_client import UNIT
from tests.server.clients import DQN, PPO, ScriptedClient, eventually, join_request
from tests.storms import scaled

from rl4sys.experience import ArraySpec
from rl4sys.server.learners.learner_setup import LearnerSetup
from rl4sys.server.learners.stored_segments import StoredSegment
from rl4sys.server.workers.learner_config import build_learner, resolve
from rl4sys.wire import SegmentFormat, decode_segment
from rl4sys.wire.generated import status_pb2

SEEN = (ArraySpec("observation", "float32", (3,)),)
OFTEN = {"checkpoint_frequency": 64}
LEARNERS = {"fleet": (PPO[0], PPO[1] | OFTEN), "solo": (DQN[0], DQN[1] | OFTEN)}
MEMBERS = {"one": "fleet", "two": "fleet", "three": "solo"}
VICTIMS = ["server", "server", "worker", "worker", "fork server", "client"]
LONGEST_PAUSE = 4.0 if "RL4SYS_STORM" in os.environ else 1.0
"""Kills are 0.3 to so many seconds apart."""
GIVEN_UP = (status_pb2.LEARNER_STATE_FAILED, status_pb2.LEARNER_STATE_HELD)
TIMEOUT = 300.0
"""Seconds: the machine may be busy, and these tests are not about speed."""


@pytest.mark.slow
def test_kills_of_server_worker_and_client_lose_repeat_and_change_nothing(
    tmp_path: Path, tally: Callable[[str, int], None]
) -> None:
    kills = scaled(20, 1_000)
    tally("kill -9 of server, worker or client", kills)
    server = Server(tmp_path)
    clients = [Client(tmp_path, server.address, name, learner, pause=0.1) for name, learner in MEMBERS.items()]
    try:
        server.start()
        for learner, method in LEARNERS.items():
            ScriptedClient(server.transport, join_request("maker", method, learner, SEEN))
        for client in clients:
            client.start()
        _kill_at_random(server, clients, kills, random.Random(kills), tmp_path / "archive")
        eventually(lambda: all(client.version > 0 for client in clients), TIMEOUT)
        healths = [client.finish() for client in clients]
        for learner in LEARNERS:
            eventually(lambda learner=learner: server.has_learned(f"shared~{learner}"), TIMEOUT)
        versions = {learner: server.learner(f"shared~{learner}").version for learner in LEARNERS}
        assert server.terminate(15.0) == 0
    finally:
        for client in clients:
            client.close()
        server.close()
    for health in healths:
        assert (health["flushed"], health["backlog"], health["drops"]) == (True, 0, {}), health
    for learner in LEARNERS:
        members = [client for client in clients if client.learner == learner]
        _check(tmp_path, learner, members, versions[learner], kills)


def _kill_at_random(server: Server, clients: list[Client], kills: int, rng: random.Random, archive: Path) -> None:
    pause = threading.Event()
    for _ in range(kills):
        # Mostly in the middle of work; sometimes while a process is still starting.
        if rng.random() < 0.7:
            _wait_for_acknowledgements(clients)
        pause.wait(rng.uniform(0.3, LONGEST_PAUSE))
        _keep(server.data, archive)
        for learner in LEARNERS:
            status = server.learner(f"shared~{learner}")
            assert status.state not in GIVEN_UP, f"{learner} is given up: {status.problem}"
        victim = rng.choice(VICTIMS)
        if victim == "client":
            client = rng.choice(clients)
            client.kill()
            client.start()
        elif victim == "worker" and (workers := server.workers()):
            os.kill(rng.choice(workers), signal.SIGKILL)
        elif victim == "fork server" and (fork_servers := server.fork_servers()):
            os.kill(fork_servers[0], signal.SIGKILL)
        else:
            server.kill()
            server.start()


def _wait_for_acknowledgements(clients: list[Client]) -> None:
    before = [client.told_bytes for client in clients]
    eventually(lambda: any(c.told_bytes > b for c, b in zip(clients, before, strict=True)), TIMEOUT)


def _keep(data: Path, archive: Path) -> None:
    """Old files of the log may be pruned later: hard links keep them for the comparison."""
    for path in (data / "learners").glob("*/log/*.records"):
        kept = archive / path.parent.parent.name / path.name
        kept.parent.mkdir(parents=True, exist_ok=True)
        if not kept.exists():
            os.link(path, kept)


def _check(place: Path, learner: str, clients: list[Client], version: int, kills: int) -> None:
    torch.set_num_threads(1)
    directory, archive = place / "data" / "learners" / f"shared~{learner}", place / "archive" / f"shared~{learner}"
    entries = list(stored(directory / "log", archive))
    names = [(entry.client, entry.epoch, entry.sequence) for entry in entries]
    assert len(names) == len(set(names)), "trained twice"
    for client in clients:
        mine = {(epoch, sequence) for name, epoch, sequence in names if name == client.name}
        assert client.told() <= mine, f"acknowledged and lost: {sorted(client.told() - mine)}"
        assert client.left <= mine, f"kept on disk and lost: {sorted(client.left - mine)}"
        assert len(mine) > kills / 10
        for versions in client.versions():
            assert versions == sorted(versions), f"{client.name} went back: {versions}"
    _check_that_nothing_was_dropped_in_silence(directory, entries)
    learned = digest_of_newest(directory)
    assert learned.position == len(list(stored_records(directory / "log", archive)))
    fresh = folded_without_faults(directory, archive, place / f"fresh {learner}")
    assert learned == fresh
    assert learned.version == version, "what clients were given is not what was learned"


def _check_that_nothing_was_dropped_in_silence(directory: Path, entries: list[StoredSegment]) -> None:
    """Within one epoch of a client neither the sequence numbers nor the numbers of its steps have a gap."""
    setup = LearnerSetup.read(directory)
    form = SegmentFormat.of(build_learner(resolve(setup.algorithm, setup.parameters), setup).algorithm.policies.explore)
    lives: dict[tuple[str, int], dict[int, list[int]]] = defaultdict(dict)
    for entry in entries:
        segment = decode_segment(form, entry.segment, client=entry.client, sequence=entry.sequence, max_steps=1_000)
        lives[entry.client, entry.epoch][entry.sequence] = [round(float(r) / UNIT) for r in segment.reward]
    for life, segments in lives.items():
        assert sorted(segments) == list(range(len(segments))), f"{life} has gaps"
        numbers = [number for sequence in range(len(segments)) for number in segments[sequence]]
        assert numbers[0] % PER_START == 0, f"{life} begins with {numbers[0]}"
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers))), f"{life} lacks steps"
