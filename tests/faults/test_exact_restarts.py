"""A worker process that is killed at random times ends with the same bits as one that never was."""

from __future__ import annotations

import os
import queue
import random
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.faults.reference_fold import digest_of_newest, folded_without_faults
from tests.server.clients import ACTION, DQN, OBSERVATION, PPO, synthetic_segment
from tests.storms import scaled

from rl4sys.records import RecordLog
from rl4sys.server.learners.learner_setup import LearnerSetup
from rl4sys.server.learners.stored_segments import StoredSegment
from rl4sys.server.workers.events import Event, Failed, LearnerProgress, Stopped
from rl4sys.server.workers.fork_server import ForkServer
from rl4sys.server.workers.learner_config import build_learner, resolve
from rl4sys.server.workers.worker import ProcessWorker
from rl4sys.wire import SegmentFormat, encode_segment

SEGMENTS = 400
TIMEOUT = 300.0


def prepare(directory: Path, method: tuple[str, dict[str, Any]]) -> None:
    """A learner with a log that it has not learned from."""
    directory.mkdir()
    setup = LearnerSetup("a", *method, OBSERVATION, ACTION, 1_000)
    setup.write(directory)
    policy = build_learner(resolve(*method), setup).algorithm.policies.explore
    form = SegmentFormat.of(policy)
    log = RecordLog(directory / "log")
    for number in range(SEGMENTS):
        segment = synthetic_segment(policy, "a", number)
        log.append([StoredSegment("a", 1, number, segment.steps, encode_segment(form, segment)).encode()])
    log.close()


def killed_after(directory: Path, fork_server: ForkServer, events: int | None) -> None:
    """Run a worker for so many events and kill it; None lets it finish and save."""
    heard: queue.Queue[Event] = queue.Queue()
    worker = ProcessWorker(directory, fork_server, heard.put)
    seen = 0
    try:
        while True:
            event = heard.get(timeout=TIMEOUT)
            if events is None:
                assert not isinstance(event, Failed), event
            seen += 1
            if isinstance(event, LearnerProgress) and event.position == SEGMENTS and events is None:
                worker.stop()
            if isinstance(event, Stopped | Failed):
                return
            if seen == events and worker.process is not None:
                os.kill(worker.process, signal.SIGKILL)
    finally:
        worker.end(30.0)


@pytest.mark.slow
@pytest.mark.parametrize("method", [PPO, DQN], ids=["PPO", "DQN"])
def test_a_killed_learner_ends_with_the_same_bits(
    tmp_path: Path, method: tuple[str, dict[str, Any]], tally: Callable[[str, int], None]
) -> None:
    kills = scaled(1, 20)
    tally("bit-exact restarts of a killed learner", kills)
    directory, rng = tmp_path / "learner", random.Random(kills)
    prepare(directory, (method[0], method[1] | {"checkpoint_frequency": 100}))
    fork_server = ForkServer()
    try:
        for _ in range(kills):
            # Each start gets a little further than the checkpoint that it began with.
            killed_after(directory, fork_server, rng.randint(1, 40))
        killed_after(directory, fork_server, None)
    finally:
        fork_server.kill()
    learned = digest_of_newest(directory)
    assert learned.position == SEGMENTS
    assert learned == folded_without_faults(directory, tmp_path / "nothing", tmp_path / "fresh")
