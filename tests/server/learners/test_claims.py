"""A join that is refused, or whose client vanishes before the answer, leaves nothing behind."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.server.clients import PPO, ScriptedClient, eventually, join_request
from tests.server.learners.test_learners import Gate
from tests.server.loopback import StubTransport

from rl4sys.server import GrpcServer, InProcessTransport, ServerOptions, ServiceLimits, ServiceOptions, TrainingService
from rl4sys.server.access.caller import Caller
from rl4sys.server.service.usage import UsageMeter
from rl4sys.wire import FailureReason
from rl4sys.wire.calls import CallFailed, Code
from rl4sys.wire.generated import training_pb2

Serve = Callable[..., InProcessTransport]
IMPATIENT = ServiceOptions("threads", limits=ServiceLimits(join_seconds=0.01))


def left_behind(service: TrainingService) -> list[str]:
    directories = [each.name for each in (service._learners.data / "learners").iterdir()]
    return sorted({*directories, *(learner.learner for learner in service.current_status().learners)})


def test_a_join_that_the_worker_refuses_leaves_nothing(serve: Serve) -> None:
    transport = serve()
    with pytest.raises(CallFailed) as failed:
        transport.join(join_request("a", ("PPO", {"learnig_rate": 1})), 60.0)
    assert failed.value.code is Code.INVALID_ARGUMENT
    assert left_behind(transport._service) == []


def test_a_client_that_lacks_an_op_leaves_no_learner(serve: Serve) -> None:
    transport = serve()
    request = join_request("a")
    del request.ops[:]
    request.ops.append("embed")
    with pytest.raises(CallFailed) as failed:
        transport.join(request, 60.0)
    assert failed.value.failure.reason is FailureReason.MISSING_OPS
    assert left_behind(transport._service) == []
    assert ScriptedClient(transport, join_request("a")).push([0]).acknowledged


def test_a_learner_without_a_client_is_removed_after_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate, now = Gate(monkeypatch), [0.0]
    with TrainingService(tmp_path, IMPATIENT, lambda: now[0]) as service:
        for at in (0.0, 50.0):
            now[0] = at
            with pytest.raises(CallFailed, match="Join again"):
                service.join(join_request("a"))
        now[0] = 100.0
        service._learners.tidy()
        assert left_behind(service) == ["a"]
        now[0] = 110.0
        gate.open.set()
        service._learners.tidy()
        assert left_behind(service) == []


def test_a_client_that_returns_in_time_gets_the_learner_for_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, now = Gate(monkeypatch), [0.0]
    with TrainingService(tmp_path, IMPATIENT, lambda: now[0]) as service:
        with pytest.raises(CallFailed, match="Join again"):
            service.join(join_request("a"))
        gate.open.set()
        eventually(lambda: service._learners.all()[0].newest is not None)
        service.join(join_request("a"))
        now[0] = 1_000.0
        service._learners.tidy()
        assert left_behind(service) == ["a"]
        assert gate.started == ["a"]


def test_a_cancelled_call_leaves_no_learner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate, noticed = Gate(monkeypatch), list[Callable[[], bool]]()
    limits = ServiceLimits(unclaimed_seconds=1e-6)
    server = GrpcServer(ServerOptions("127.0.0.1:0", tmp_path, service=ServiceOptions("threads", limits=limits)))
    join = server.service.join

    def noticing(request: training_pb2.JoinRequest, caller: Caller, is_cancelled: Callable[[], bool]) -> object:
        noticed.append(is_cancelled)
        return join(request, caller, is_cancelled)

    monkeypatch.setattr(server.service, "join", noticing)
    transport = StubTransport(server.port)
    try:
        call = transport._stub.Join.future(join_request("a"), timeout=60.0)
        eventually(lambda: gate.started == ["a"])
        call.cancel()
        eventually(lambda: noticed[0]())
        gate.open.set()
        eventually(lambda: server.service.calls["Join", "CANCELLED"] == 1)
        server.service._learners.tidy()
        assert left_behind(server.service) == []
    finally:
        transport.close()
        server.drain()


def test_a_server_that_ended_while_creating_a_learner_starts_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate(monkeypatch)
    with TrainingService(tmp_path, IMPATIENT) as service:
        with pytest.raises(CallFailed, match="Join again"):
            service.join(join_request("a"))
        gate.open.set()
    monkeypatch.undo()
    with TrainingService(tmp_path, IMPATIENT) as again:
        assert left_behind(again) == []


def test_sixty_joins_with_fresh_ids_leave_no_more_learners_than_the_limit(tmp_path: Path) -> None:
    limits = ServiceLimits(max_learners=8)
    with TrainingService(tmp_path, ServiceOptions("threads", limits=limits)) as service:
        refused = Counter[Code]()
        for n in range(60):
            try:
                service.join(join_request(f"client-{n}", PPO if n % 2 else ("PPO", {"bad": n})))
            except CallFailed as error:
                refused[error.code] += 1
        assert refused == {Code.INVALID_ARGUMENT: 8, Code.RESOURCE_EXHAUSTED: 44}
        assert len(left_behind(service)) == 8


@pytest.mark.slow
def test_sixty_joins_with_fresh_ids_take_bounded_processes_and_memory(tmp_path: Path) -> None:
    limits = ServiceLimits(max_learners=4)
    with TrainingService(tmp_path, ServiceOptions("processes", limits=limits)) as service:
        meter = UsageMeter(lambda: 0.0)
        service.join(join_request("client-0"))
        before = meter.of(os.getpid()).memory_bytes
        for n in range(60):
            method = PPO if n % 2 else ("PPO", {"bad": n})
            try:
                service.join(join_request(f"client-{n}", method))
            except CallFailed:
                continue
        workers = [learner.process for learner in service._learners.all()]
        assert len(workers) == len(left_behind(service)) == 4
        assert meter.of(os.getpid()).memory_bytes - before < 64 << 20
        processes = {process for process in workers if process is not None}
    assert not any(Path(f"/proc/{process}").exists() for process in processes)
