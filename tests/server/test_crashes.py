from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from tests.server.clients import DQN, PPO, ScriptedClient, acknowledged, eventually, join_request
from tests.server.loopback import StubTransport
from tests.server.operators import Operator
from tests.server.workers.test_fold import local_learner, wait_for_version

from rl4sys import failpoints
from rl4sys.records import RecordReader, verify
from rl4sys.server import InProcessTransport, ServiceOptions, TrainingService
from rl4sys.server.learners.condition import Condition
from rl4sys.server.learners.stored_segments import StoredSegment
from rl4sys.wire.calls import CallFailed, Code
from rl4sys.wire.generated import status_pb2, training_pb2

Serve = Callable[..., InProcessTransport]
PROCESSES = ServiceOptions(workers="processes", restart_seconds=0.01)


def learner_status(client: ScriptedClient) -> status_pb2.LearnerStatus:
    return client.transport.status(status_pb2.StatusRequest(learner=client.joined.learner), 5.0).learners[0]


@pytest.fixture
def failing_learner() -> Iterator[None]:
    """The code of the learner 'bad' raises at every segment."""

    def fail(name: str) -> None:
        if name == "before learn" and threading.current_thread().name == "learner bad":
            raise ArithmeticError("a mistake in its code")

    failpoints.listen(fail)
    yield
    failpoints.listen(None)


@pytest.mark.usefixtures("failing_learner")
def test_a_learner_that_keeps_failing_is_given_up_and_the_others_continue(serve: Serve) -> None:
    transport = serve()
    bad, good = ScriptedClient(transport, join_request("bad")), ScriptedClient(transport, join_request("good"))
    bad.push(range(4))
    eventually(lambda: learner_status(bad).state == status_pb2.LEARNER_STATE_FAILED)
    assert "ArithmeticError: a mistake in its code" in learner_status(bad).problem
    assert learner_status(bad).restarts == 2
    newcomer = ScriptedClient(transport, join_request("bad"))
    np.testing.assert_array_equal(newcomer.weights(), bad.weights())
    assert next(iter(transport.watch(training_pb2.WatchRequest(session=newcomer.joined.session)))).version == 0
    assert acknowledged(bad.push([4])) == [4]
    good.push(range(4))
    wait_for_version(good, 1)


def test_a_failed_learner_is_restarted_alone_and_learns_what_it_had_stored(serve: Serve, failing_learner: None) -> None:
    expected = local_learner(PPO, 8, "bad").store.newest
    bad = ScriptedClient(serve(), join_request("bad"))
    bad.push(range(8))
    eventually(lambda: learner_status(bad).state == status_pb2.LEARNER_STATE_FAILED)
    failpoints.listen(None)
    assert "has a new worker" in Operator(bad.transport).manage("bad", "restart").message
    wait_for_version(bad, expected.number)
    np.testing.assert_array_equal(bad.weights(), expected.blob)
    assert not learner_status(bad).problem


def test_a_killed_worker_is_replaced_and_learns_the_same_weights(serve: Serve) -> None:
    expected = local_learner(PPO, 24).store.newest
    client = ScriptedClient(serve(PROCESSES), join_request("a"))
    client.push(range(10))
    learner = client.transport._service._learners.find("a")
    assert learner is not None
    assert learner.process is not None
    os.kill(learner.process, signal.SIGKILL)
    client.push(range(10, 24))
    wait_for_version(client, expected.number)
    assert learner_status(client).restarts == 1
    np.testing.assert_array_equal(client.weights(), expected.blob)


@pytest.mark.slow
def test_repeated_kills_of_workers_change_no_bit_of_the_weights(serve: Serve) -> None:
    often = (DQN[0], DQN[1] | {"checkpoint_frequency": 16})
    total = 80
    expected = local_learner(often, total).store.newest
    client = ScriptedClient(serve(PROCESSES), join_request("a", often))
    learner = client.transport._service._learners.find("a")
    assert learner is not None
    killed = None
    for first in range(0, total, 20):
        eventually(lambda k=killed: learner.process not in (None, k) and learner.condition is Condition.RUNNING)
        reached = learner.version
        client.push(range(first, first + 20))
        # While it folds or saves what is new.
        eventually(lambda r=reached: learner.version > r)
        killed = learner.process
        assert killed is not None
        os.kill(killed, signal.SIGKILL)
    wait_for_version(client, expected.number)
    np.testing.assert_array_equal(client.weights(), expected.blob)
    assert learner_status(client).restarts >= 3


def test_the_serving_process_imports_no_torch() -> None:
    code = "import sys, rl4sys.server; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@contextmanager
def server_process(data: Path) -> Iterator[tuple[subprocess.Popen[str], StubTransport]]:
    """A server that is killed at the end."""
    process = subprocess.Popen(
        [sys.executable, "-m", "rl4sys.server", "--listen", "127.0.0.1:0", "--data", str(data)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stdout is not None
        transport = StubTransport(int(process.stdout.readline().split()[1]))
        yield process, transport
        transport.close()
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


@pytest.mark.slow
def test_kill_9_of_the_server_loses_nothing_acknowledged_and_learns_nothing_twice(tmp_path: Path) -> None:
    total, sent, told = 60, 0, set[int]()
    for end in (13, 45):
        with server_process(tmp_path) as (process, transport):
            client = ScriptedClient(transport, join_request("a"))
            # Earlier segments are pushed again, as by a client that never got the reply.
            for sequence in range(max(0, sent - 3), end):
                told |= set(acknowledged(client.push([sequence])))
            sent = end
            process.send_signal(signal.SIGKILL)
    with server_process(tmp_path) as (process, transport):
        client = ScriptedClient(transport, join_request("a"))
        client.push(range(sent - 3, total))
        expected = local_learner(PPO, total).store.newest
        wait_for_version(client, expected.number)
        np.testing.assert_array_equal(client.weights(), expected.blob)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=15) == 0
    log = tmp_path / "learners" / "a" / "log"
    reader = RecordReader(log, verify(log).start)
    stored = [StoredSegment.decode(record.payload).sequence for record in reader.read(1 << 30)]
    reader.close()
    assert told <= set(stored)
    assert stored == list(range(total))


@pytest.mark.slow
def test_sigterm_drains_in_time_and_a_second_server_is_refused(tmp_path: Path) -> None:
    with server_process(tmp_path) as (process, transport):
        client = ScriptedClient(transport, join_request("a"))
        client.push(range(20))
        with pytest.raises(Exception, match="served by another process"):
            TrainingService(tmp_path)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=10) == 0
    assert len(list((tmp_path / "learners" / "a" / "checkpoints").glob("0*"))) == 1


def test_joining_while_the_worker_has_ended_asks_to_try_again(serve: Serve) -> None:
    transport = serve(ServiceOptions(workers="processes", restart_seconds=60.0))
    client = ScriptedClient(transport, join_request("a"))
    process = transport._service._learners.find("a")
    assert process is not None
    assert process.process is not None
    os.kill(process.process, signal.SIGKILL)
    eventually(lambda: learner_status(client).restarts == 1)
    spelt_otherwise = ("ppo", PPO[1] | {"normalize_obs": False})
    with pytest.raises(CallFailed, match="Join again") as failed:
        transport.join(join_request("a", spelt_otherwise), 5.0)
    assert failed.value.code is Code.UNAVAILABLE
    assert failed.value.failure.retry_after_ms > 0
