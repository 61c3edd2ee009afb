from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.server.clients import ACTION, OBSERVATION, PPO, ScriptedClient, eventually, join_request
from tests.server.conftest import THREADS

from rl4sys.records import RecordLog
from rl4sys.server import InProcessTransport, ServiceLimits, ServiceOptions, TrainingService
from rl4sys.server.learners import hosted_learner
from rl4sys.server.learners.learner_setup import LearnerSetup
from rl4sys.server.workers.events import Event, Held
from rl4sys.server.workers.worker import ThreadWorker
from rl4sys.server.workers.worker_main import WorkerControl, work
from rl4sys.wire.calls import CallFailed, Code
from rl4sys.wire.generated import status_pb2

Serve = Callable[..., InProcessTransport]


class Gate:
    """Holds back the events of workers, and counts how many have started."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.open = threading.Event()
        self.started: list[str] = []
        gate = self

        class Held(ThreadWorker):
            def __init__(self, directory: Path, files: Any, listen: Callable[[Event], None], plugins: Any) -> None:
                gate.started.append(directory.name)

                def later(event: Event) -> None:
                    gate.open.wait(60)
                    listen(event)

                super().__init__(directory, files, later, plugins)

        monkeypatch.setattr(hosted_learner, "ThreadWorker", Held)


@pytest.fixture
def learned(serve: Serve, tmp_path: Path) -> Path:
    """A data directory with six learners, which have no archive of versions, like those of version 0.2."""
    transport = serve()
    for name in "abcdef":
        ScriptedClient(transport, join_request(name)).push([0])
    transport._service.drain()
    for name in "abcdef":
        shutil.rmtree(tmp_path / "data" / "learners" / name / "versions")
    return tmp_path / "data"


def test_a_server_with_many_learners_restores_a_few_at_a_time(learned: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate(monkeypatch)
    limits = ServiceLimits(max_starting=2, max_waiting_joins=1, join_seconds=0.05)
    with TrainingService(learned, ServiceOptions("threads", limits=limits)) as service:
        transport = InProcessTransport(service)
        assert gate.started == ["a", "b"]
        for name, doing in (("a", "still being created or restored"), ("f", "waits until others have started")):
            with pytest.raises(CallFailed, match=doing) as failed:
                transport.join(join_request(name), 5.0)
            assert failed.value.code is Code.UNAVAILABLE
            assert failed.value.failure.retry_after_ms > 0
        assert {learner.state for learner in service.current_status().learners} == {status_pb2.LEARNER_STATE_STARTING}
        gate.open.set()
        eventually(
            lambda: {each.state for each in service.current_status().learners} == {status_pb2.LEARNER_STATE_WAITING}
        )
        assert gate.started == list("abcdef")
        assert ScriptedClient(transport, join_request("f")).push([0]).repeated_segments == 1


def test_waiting_joins_do_not_take_every_thread(learned: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate(monkeypatch)
    limits = ServiceLimits(max_waiting_joins=1, join_seconds=60.0)
    with TrainingService(learned, ServiceOptions("threads", limits=limits)) as service:
        transport = InProcessTransport(service)
        patient = threading.Thread(target=ScriptedClient, args=(transport, join_request("a")))
        patient.start()
        eventually(lambda: service._learners.join_slots._value == 0)
        with pytest.raises(CallFailed, match="Join again"):
            transport.join(join_request("b"), 5.0)
        gate.open.set()
        patient.join(60)
        assert transport.join(join_request("a"), 5.0).learner == "a"


def test_a_server_can_be_ended_while_learners_wait_to_start(learned: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Gate(monkeypatch)
    service = TrainingService(learned, ServiceOptions("threads", limits=ServiceLimits(max_starting=1)))
    eventually(lambda: gate.started == ["a"])
    draining = threading.Thread(target=service.drain, args=(1.0,))
    draining.start()
    draining.join()
    gate.open.set()
    assert gate.started == ["a"]
    with TrainingService(learned, THREADS) as again:
        eventually(lambda: all(each.version == 0 and not each.problem for each in again.current_status().learners))
        assert [each.stored_segments for each in again.current_status().learners] == [1] * 6


def test_a_worker_that_cannot_be_started_is_tried_again(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    failures = [OSError("no more processes")]

    class Unlucky(ThreadWorker):
        def __init__(self, *arguments: Any) -> None:
            if failures:
                raise failures.pop()
            super().__init__(*arguments)

    monkeypatch.setattr(hosted_learner, "ThreadWorker", Unlucky)
    transport = serve(ServiceOptions("threads", limits=ServiceLimits(max_starting=1), restart_seconds=0.01))
    ScriptedClient(transport, join_request("a")).push([0])
    learner = transport._service.current_status().learners[0]
    assert (learner.restarts, "no more processes" in learner.problem) == (1, True)
    assert ScriptedClient(transport, join_request("b")).joined.learner == "b"


def test_a_damaged_checkpoint_is_skipped_with_advice_for_a_server(
    serve: Serve, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ScriptedClient(serve(), join_request("a")).push(range(4))
    serve()._service.drain()
    for checkpoint in (tmp_path / "data" / "learners" / "a" / "checkpoints").glob("0*"):
        (checkpoint / "manifest.json").write_text("{}")
    transport = serve()
    ScriptedClient(transport, join_request("a"))
    eventually(lambda: "then the log from its beginning" in caplog.text)
    assert "rl4sys train" not in caplog.text


def test_a_pruned_log_without_checkpoints_is_held_with_advice(tmp_path: Path) -> None:
    LearnerSetup("a", *PPO, OBSERVATION, ACTION, 100).write(tmp_path)
    log = RecordLog(tmp_path / "log", file_bytes=1_024)
    for _ in range(3):
        log.append([bytes(1_000)])
        log.commit()
    log.prune(2)
    log.close()
    events: list[Event] = []
    work(tmp_path, None, WorkerControl(), events.append)
    (held,) = [event for event in events if isinstance(event, Held)]
    assert "no readable checkpoint covers them" in held.problem
    assert "nothing was deleted" in held.problem
