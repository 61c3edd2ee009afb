"""Learners that no client uses are moved aside after a while, if the server is asked for that."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.server.clients import ScriptedClient, eventually, join_request
from tests.server.operators import Operator

from rl4sys.server import InProcessTransport, ServiceLimits, ServiceOptions, TrainingService
from rl4sys.wire.calls import CallFailed

DAY = 86_400.0


class AgingServer:
    """A server with one learner, and with clocks of its own."""

    def __init__(self, data: Path, expire_seconds: float | None) -> None:
        self.data, self.elapsed = data, 0.0
        options = ServiceOptions("threads", limits=ServiceLimits(expire_seconds=expire_seconds))
        self.service = TrainingService(data, options, self.monotonic, wall_clock=self.time)
        self.client = ScriptedClient(InProcessTransport(self.service), join_request("a"))
        created = self.time()
        os.utime(data / "learners" / "a" / "setup.json", (created, created))

    def monotonic(self) -> float:
        return self.elapsed

    def time(self) -> float:
        return 1e9 + self.elapsed

    def pass_days(self, days: float) -> list[str]:
        """The learners that are left."""
        self.elapsed += days * DAY
        self.service.remove_expired()
        return [learner.name for learner in self.service._learners.all()]


@pytest.fixture
def aging(tmp_path: Path) -> Iterator[AgingServer]:
    server = AgingServer(tmp_path / "data", 30 * DAY)
    yield server
    server.service.drain()


def test_an_unused_learner_is_moved_aside_with_an_entry_in_the_audit_log(aging: AgingServer) -> None:
    assert aging.pass_days(29) == ["a"]
    assert aging.pass_days(1.1) == []
    (aside,) = (aging.data / "deleted").iterdir()
    assert (aside / "setup.json").is_file()
    (entry,) = Operator(aging.client.transport).audit("a")
    assert (entry.command, entry.who, entry.result) == ("expire", "server", "OK")
    assert str(aside) in entry.message
    with pytest.raises(CallFailed, match="Join again"):
        aging.client.push([0])


def test_a_learner_that_is_used_does_not_expire(aging: AgingServer) -> None:
    for sequence in range(4):
        aging.pass_days(20)
        aging.client.push([sequence])
        assert aging.pass_days(0.01) == ["a"]
    eventually(lambda: not aging.service._learners.all()[0].inbox.unfolded)
    assert aging.pass_days(29) == ["a"]
    assert aging.pass_days(2) == []


def test_after_a_start_clients_have_time_to_call_before_anything_expires(tmp_path: Path) -> None:
    server = AgingServer(tmp_path / "data", 30 * DAY)
    server.service.drain()
    os.utime(tmp_path / "data" / "learners" / "a" / "setup.json", (0, 0))
    options = ServiceOptions("threads", limits=ServiceLimits(expire_seconds=30 * DAY))
    with TrainingService(tmp_path / "data", options, server.monotonic, wall_clock=server.time) as server.service:
        assert server.pass_days(0.02) == ["a"]
        assert server.pass_days(0.03) == []


def test_nothing_expires_unless_asked_for(tmp_path: Path) -> None:
    server = AgingServer(tmp_path / "data", None)
    assert server.pass_days(10_000) == ["a"]
    server.service.drain()
