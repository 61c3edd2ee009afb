from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.records.failpoint_files import FailpointFiles
from tests.server.clients import PPO, ScriptedClient, acknowledged, eventually, join_request
from tests.server.workers.test_fold import local_learner, wait_for_version

from rl4sys.records import DiskFiles
from rl4sys.server import InProcessTransport, ServiceLimits, ServiceOptions, TrainingService
from rl4sys.wire import FailureReason
from rl4sys.wire.calls import CallFailed, Code
from rl4sys.wire.generated import status_pb2


class FailingDisk:
    """Fails at one failpoint while it is set to."""

    def __init__(self) -> None:
        self.point, self.number = "", 0
        self.files = FailpointFiles(DiskFiles(), self._reached)

    def fail(self, point: str, number: int) -> None:
        self.point, self.number = point, number

    def heal(self) -> None:
        self.point = ""

    def _reached(self, point: str) -> None:
        if point == self.point:
            raise OSError(self.number, os.strerror(self.number))


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def disk() -> FailingDisk:
    return FailingDisk()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def client(tmp_path: Path, disk: FailingDisk, clock: Clock) -> Iterator[ScriptedClient]:
    with TrainingService(tmp_path, ServiceOptions(workers="threads", files=disk.files), clock) as service:
        yield ScriptedClient(InProcessTransport(service), join_request("a"))
        disk.heal()


def server_status(client: ScriptedClient) -> status_pb2.ServerStatus:
    return client.transport.status(status_pb2.StatusRequest(), 5.0).server


def test_a_full_disk_stops_acknowledgements_and_recovers_by_itself(
    client: ScriptedClient, disk: FailingDisk, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "rl4sys.server.learners.inbox")
    client.push([0])
    disk.fail("during append", errno.ENOSPC)
    with pytest.raises(CallFailed, match="free space") as failed:
        client.push([1])
    assert (failed.value.code, failed.value.failure.reason) == (Code.UNAVAILABLE, FailureReason.STORAGE)
    eventually(lambda: server_status(client).state == status_pb2.SERVER_STATE_STORAGE_FAILED)
    disk.heal()
    assert acknowledged(client.push([1])) == [1]
    eventually(lambda: server_status(client).state == status_pb2.SERVER_STATE_SERVING)
    told = [record.message for record in caplog.records if record.name == "rl4sys.server.learners.inbox"]
    assert len(told) == 2, "when it begins, and when it is over"
    assert "Nothing is acknowledged for a" in told[0]
    assert "stored again" in told[1]


def test_after_a_failed_sync_nothing_is_acknowledged_until_the_log_is_reopened(
    client: ScriptedClient, disk: FailingDisk, clock: Clock
) -> None:
    client.push([0])
    disk.fail("before sync", errno.EIO)
    for _ in range(2):
        with pytest.raises(CallFailed) as failed:
            client.push([1])
        assert failed.value.failure.reason is FailureReason.STORAGE
    disk.heal()
    with pytest.raises(CallFailed):
        client.push([1])
    clock.now += 2.0
    assert acknowledged(client.push(range(8))) == list(range(8))
    expected = local_learner(PPO, 8).store.newest
    wait_for_version(client, expected.number)
    np.testing.assert_array_equal(client.weights(), expected.blob)
    assert server_status(client).state == status_pb2.SERVER_STATE_SERVING


def stalled(tmp_path: Path, limits: ServiceLimits) -> TrainingService:
    return TrainingService(tmp_path, ServiceOptions(workers="threads", limits=limits))


def hold_back(service: TrainingService, name: str) -> None:
    """As if the learner never finished."""
    learner = service._learners.find(name)
    assert learner is not None
    learner.inbox.folded = lambda position: None  # type: ignore[method-assign]


def test_a_full_inbox_asks_to_wait_and_keeps_what_fits(tmp_path: Path) -> None:
    with stalled(tmp_path, ServiceLimits(inbox_segments=3)) as service:
        client = ScriptedClient(InProcessTransport(service), join_request("a"))
        hold_back(service, "a")
        reply = client.push(range(5))
        assert (acknowledged(reply), reply.retry_after_ms > 0) == ([0, 1, 2], True)
        with pytest.raises(CallFailed) as failed:
            client.push([3])
        assert failed.value.code is Code.RESOURCE_EXHAUSTED
        assert failed.value.failure.reason is FailureReason.INBOX_FULL
        assert failed.value.failure.retry_after_ms > 0
        assert client.push(range(3)).repeated_segments == 3


def test_one_client_cannot_fill_the_inbox_of_all(tmp_path: Path) -> None:
    with stalled(tmp_path, ServiceLimits(client_bytes=500)) as service:
        transport = InProcessTransport(service)
        greedy = ScriptedClient(transport, join_request("greedy", policy_id="fleet"))
        other = ScriptedClient(transport, join_request("other", policy_id="fleet"))
        hold_back(service, "shared~fleet")
        assert acknowledged(greedy.push(range(9))) == [0, 1]
        with pytest.raises(CallFailed) as failed:
            greedy.push([2])
        assert failed.value.failure.reason is FailureReason.QUOTA
        assert acknowledged(other.push([0])) == [0]


def test_learning_frees_space_in_the_inbox(tmp_path: Path) -> None:
    with stalled(tmp_path, ServiceLimits(inbox_segments=4)) as service:
        client = ScriptedClient(InProcessTransport(service), join_request("a"))
        for first in range(0, 40, 4):
            eventually(lambda: service._learners.find("a").inbox.queued() == (0, 0))  # type: ignore[union-attr]
            assert len(acknowledged(client.push(range(first, first + 4)))) == 4
