"""Idle learners sleep without a process, serve what they have, and lose nothing that arrives at any moment."""

from __future__ import annotations

import os
import resource
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.server.clients import PPO, ScriptedClient, acknowledged, eventually, join_request
from tests.server.operators import Operator
from tests.server.workers.test_fold import local_learner, wait_for_version

from rl4sys import failpoints
from rl4sys.server import InProcessTransport, ServiceLimits, ServiceOptions, TrainingService
from rl4sys.server.learners.condition import Condition
from rl4sys.server.learners.hosted_learner import HostedLearner
from rl4sys.server.learners.learner_budget import DESCRIPTORS
from rl4sys.wire.calls import CallFailed
from rl4sys.wire.generated import status_pb2, training_pb2

SLEEP_SECONDS = ServiceLimits().sleep_seconds or 0.0


class IdleServer:
    """A server with a clock of its own, and one client that has pushed four segments."""

    def __init__(self, data: Path, options: ServiceOptions) -> None:
        self.now = 0.0
        self.service = TrainingService(data, options, lambda: self.now)
        self.client = ScriptedClient(InProcessTransport(self.service), join_request("a"))
        self.client.push(range(4))
        wait_for_version(self.client, 1)
        eventually(lambda: not self.learner.inbox.unfolded)

    @property
    def learner(self) -> HostedLearner:
        found = self.service._learners.find("a")
        assert found is not None
        return found

    def pass_time(self) -> None:
        self.now += SLEEP_SECONDS
        self.service._learners.let_sleep()

    def fall_asleep(self) -> None:
        self.pass_time()
        eventually(lambda: self.learner.condition is Condition.SLEEPING)


@pytest.fixture
def idle(tmp_path: Path) -> Iterator[IdleServer]:
    server = IdleServer(tmp_path / "data", ServiceOptions("threads"))
    yield server
    failpoints.listen(None)
    server.service.drain()


def require_learned(server: IdleServer, segments: int) -> None:
    expected = local_learner(PPO, segments).store.newest
    wait_for_version(server.client, expected.number)
    np.testing.assert_array_equal(server.client.weights(), expected.blob)


def test_an_idle_learner_sleeps_and_the_next_push_wakes_it(idle: IdleServer) -> None:
    idle.fall_asleep()
    (status,) = idle.service.current_status("a").learners
    assert (status.state, status.learned_steps) == (status_pb2.LEARNER_STATE_SLEEPING, 32)
    assert acknowledged(idle.client.push(range(4, 8))) == [4, 5, 6, 7]
    require_learned(idle, 8)
    assert idle.learner.worker.restarts.count == 0


def test_joins_pulls_and_watches_are_served_while_a_learner_sleeps(idle: IdleServer) -> None:
    idle.fall_asleep()
    newcomer = ScriptedClient(idle.client.transport, join_request("a"))
    assert newcomer.joined.version == 1
    np.testing.assert_array_equal(newcomer.weights(), local_learner(PPO, 4).store.newest.blob)
    watch = newcomer.transport.watch(training_pb2.WatchRequest(session=newcomer.joined.session))
    assert next(iter(watch)).version == 1
    assert idle.learner.condition is Condition.SLEEPING


def test_a_join_whose_parameters_only_a_worker_can_compare_wakes_it(idle: IdleServer) -> None:
    idle.fall_asleep()
    same = (PPO[0], PPO[1] | {"checkpoint_frequency": 20_000})
    assert ScriptedClient(idle.client.transport, join_request("a", same)).joined.version == 1
    assert idle.learner.condition is Condition.RUNNING


def test_a_command_wakes_a_learner(idle: IdleServer) -> None:
    idle.fall_asleep()
    reply = Operator(idle.client.transport).manage("a", "set", changes={"algorithm.lr": "0.01"})
    assert "learns with algorithm.lr=0.01" in reply.message


def test_a_learner_stays_awake_until_it_has_been_idle_for_long_enough(idle: IdleServer) -> None:
    idle.now += SLEEP_SECONDS - 1
    idle.service._learners.let_sleep()
    idle.client.push([4])
    eventually(lambda: not idle.learner.inbox.unfolded)
    idle.now += SLEEP_SECONDS - 1
    idle.service._learners.let_sleep()
    assert not idle.learner.worker.is_asleep


def test_a_push_between_the_decision_to_sleep_and_the_end_of_the_worker_is_learned(idle: IdleServer) -> None:
    def push_when_asked() -> bool:
        assert acknowledged(idle.client.push(range(4, 8))) == [4, 5, 6, 7]
        return True

    idle.learner.worker.sleep(push_when_asked)
    require_learned(idle, 8)


def test_a_push_while_the_worker_saves_before_it_sleeps_is_learned(idle: IdleServer) -> None:
    is_saving, may_save = threading.Event(), threading.Event()

    def wait(name: str) -> None:
        if name == "before save" and threading.current_thread().name == "learner a":
            is_saving.set()
            may_save.wait(60.0)

    failpoints.listen(wait)
    idle.pass_time()
    assert is_saving.wait(60.0)
    assert acknowledged(idle.client.push(range(4, 8))) == [4, 5, 6, 7]
    may_save.set()
    require_learned(idle, 8)


def test_a_command_while_the_worker_saves_before_it_sleeps_waits_for_the_next_one(idle: IdleServer) -> None:
    def wait(name: str) -> None:
        if name == "before save" and idle.learner.worker.is_asleep:
            eventually(lambda: idle.learner.worker._is_woken)

    failpoints.listen(wait)
    idle.pass_time()
    reply = Operator(idle.client.transport).manage("a", "set", changes={"algorithm.lr": "0.01"})
    assert "learns with algorithm.lr=0.01" in reply.message


def test_a_server_is_closed_while_learners_sleep(idle: IdleServer, tmp_path: Path) -> None:
    idle.fall_asleep()
    idle.service.drain()
    with TrainingService(tmp_path / "data", ServiceOptions("threads")) as again:
        client = ScriptedClient(InProcessTransport(again), join_request("a"))
        client.push(range(4, 8))
        wait_for_version(client, 2)


def test_the_process_of_a_sleeping_learner_is_gone(tmp_path: Path) -> None:
    server = IdleServer(tmp_path / "data", ServiceOptions("processes"))
    try:
        process = server.learner.process
        assert process is not None
        server.fall_asleep()
        assert server.learner.process is None
        assert not Path(f"/proc/{process}").exists()
        server.client.push(range(4, 8))
        require_learned(server, 8)
    finally:
        server.service.drain()


def test_file_descriptors_of_sleeping_learners_stay_reserved(idle: IdleServer, monkeypatch: pytest.MonkeyPatch) -> None:
    idle.fall_asleep()
    used = len(os.listdir("/proc/self/fd"))
    monkeypatch.setattr(resource, "getrlimit", lambda which: (used + 64 + 2 * DESCRIPTORS - 1, 1 << 20))
    with pytest.raises(CallFailed, match="LimitNOFILE"):
        idle.client.transport.join(join_request("b"), 60.0)
