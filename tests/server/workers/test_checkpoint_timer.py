"""Checkpoints by time: when they are written, and that they change nothing that is learned."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.server.clients import DQN, PPO, SAC, ScriptedClient, eventually, join_request
from tests.server.workers.test_fold import local_learner, wait_for_version

from rl4sys.server import InProcessTransport, ServiceLimits, ServiceOptions
from rl4sys.server.workers.checkpoint_timer import CheckpointTimer
from rl4sys.server.workers.events import Event, Published, Saved, Stopped
from rl4sys.server.workers.learner_limits import WorkerOptions
from rl4sys.server.workers.worker_main import WorkerControl, work

Serve = Callable[..., InProcessTransport]
Method = tuple[str, dict[str, Any]]


def test_a_checkpoint_is_due_when_progress_was_not_saved_for_long_enough() -> None:
    timer = CheckpointTimer(60.0)
    assert not timer.is_due(100.0, has_unsaved=True)
    assert not timer.is_due(159.0, has_unsaved=True)
    assert timer.is_due(160.0, has_unsaved=True)


def test_an_idle_learner_without_progress_is_never_saved_again() -> None:
    timer = CheckpointTimer(60.0)
    assert not any(timer.is_due(now, has_unsaved=False) for now in (0.0, 1e3, 1e6))
    assert not timer.is_due(2e6, has_unsaved=True)


def test_a_checkpoint_that_could_not_be_written_is_tried_again_after_the_same_time() -> None:
    timer = CheckpointTimer(60.0)
    due = [now for now in range(0, 200, 10) if timer.is_due(float(now), has_unsaved=True)]
    assert due == [60, 120, 180]


def test_without_a_time_there_are_no_checkpoints_by_time() -> None:
    assert not CheckpointTimer(None).is_due(1e9, has_unsaved=True)


def folded(learner: Path, seconds: float | None) -> list[Event]:
    """The events of a worker over a log, with a clock that advances by a second each time it is read."""
    events: list[Event] = []
    control = WorkerControl()

    def send(event: Event) -> None:
        events.append(event)
        if getattr(event, "position", 0) == 24 and not isinstance(event, Saved):
            control.stop()

    options = WorkerOptions(checkpoint_seconds=seconds)
    work(learner, None, control, send, options, clock=map(float, itertools.count()).__next__)
    assert isinstance(events[-1], Stopped)
    return events


@pytest.mark.parametrize("method", [PPO, DQN, SAC], ids=lambda method: method[0])
def test_when_checkpoints_are_written_changes_no_bit(serve: Serve, tmp_path: Path, method: Method) -> None:
    client = ScriptedClient(serve(), join_request("a", method))
    client.push(range(24))
    client.transport._service.drain()
    learner = tmp_path / "data" / "learners" / "a"
    versions = []
    for seconds in (None, 3.0, 7.0):
        shutil.rmtree(learner / "checkpoints")
        events = folded(learner, seconds)
        assert (sum(isinstance(event, Saved) for event in events) > 2) == (seconds is not None)
        versions.append([(event.version, event.blob) for event in events if isinstance(event, Published)])
    assert versions[0] == versions[1] == versions[2]
    np.testing.assert_array_equal(np.frombuffer(versions[0][-1][1], "<f4"), local_learner(method, 24).store.newest.blob)


def test_an_idle_learner_with_progress_is_saved(serve: Serve) -> None:
    limits = ServiceLimits(checkpoint_seconds=1e-6)
    client = ScriptedClient(serve(ServiceOptions("threads", limits=limits)), join_request("a"))
    client.push(range(4))
    wait_for_version(client, 1)
    learner = client.transport._service._learners.find("a")
    assert learner is not None
    eventually(lambda: learner.saved_at is not None)
