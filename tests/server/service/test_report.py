"""Reports of clients: kept within bounds, shown in the status, and answered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.server.clients import ScriptedClient, join_request
from tests.server.conftest import THREADS

from rl4sys.server import InProcessTransport, TrainingService
from rl4sys.server.service.report import bounded
from rl4sys.wire.calls import CallFailed, Code
from rl4sys.wire.generated import status_pb2, training_pb2

Serve = Callable[..., InProcessTransport]


def report(client: ScriptedClient, **values: object) -> training_pb2.ReportReply:
    request = training_pb2.ReportRequest(
        session=client.joined.session,
        epoch=client.epoch,
        report=status_pb2.ClientReport(**values),  # type: ignore[arg-type]
    )
    return client.transport.report(request, 5.0)


def test_the_status_has_the_newest_report_and_its_age(tmp_path: Path) -> None:
    now = [100.0]
    with TrainingService(tmp_path, THREADS, lambda: now[0]) as service:
        client = ScriptedClient(InProcessTransport(service), join_request("a"))
        report(client, decisions=5)
        report(client, decisions=7, drops={"queue": 2}, decision_time=[0, 3, 4])
        now[0] += 2.5
        (status,) = service.current_status().clients
    assert (status.report.decisions, dict(status.report.drops), list(status.report.decision_time)) == (
        7,
        {"queue": 2},
        [0, 3, 4],
    )
    assert status.report_age_seconds == 2.5


def test_a_client_that_never_reported_has_none_in_the_status(serve: Serve) -> None:
    client = ScriptedClient(serve(), join_request("a"))
    (status,) = client.transport.status(status_pb2.StatusRequest(), 5.0).clients
    assert not status.HasField("report")


def test_joining_says_how_often_to_report_and_a_report_is_answered_with_the_version(serve: Serve) -> None:
    client = ScriptedClient(serve(), join_request("a"))
    assert client.joined.report_seconds == 5.0
    assert report(client).version == client.joined.version


def test_a_report_of_an_unknown_session_asks_to_join_again(serve: Serve) -> None:
    with pytest.raises(CallFailed) as failed:
        serve().report(training_pb2.ReportRequest(session="forged"), 5.0)
    assert failed.value.code is Code.FAILED_PRECONDITION


def test_an_oversized_report_is_cut_to_the_lengths_of_the_contract() -> None:
    kept = bounded(
        status_pb2.ClientReport(
            last_error="x" * 5_000,
            off="y" * 500,
            drops={f"{n:0200}": n for n in range(100)},
            decision_time=range(1_000),
            uptime_seconds=float("nan"),
        )
    )
    assert (len(kept.last_error), len(kept.off), len(kept.decision_time)) == (1_000, 64, 24)
    assert len(kept.drops) <= 32
    assert kept.uptime_seconds == 0.0
    assert kept.ByteSize() < 4_096


def test_clients_whose_reports_do_not_fit_a_status_message_are_counted(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    transport = serve()
    for name in "abc":
        report(ScriptedClient(transport, join_request(name, policy_id="fleet")), last_error="x" * 1_000)
    monkeypatch.setattr("rl4sys.server.service.status._CLIENTS_BYTES", 2_500)
    reply = transport.status(status_pb2.StatusRequest(), 5.0)
    assert [client.client for client in reply.clients] == ["a", "b"]
    assert reply.server.unlisted_clients == 1


def test_many_clients_are_asked_to_report_less_often(serve: Serve) -> None:
    limits = THREADS.limits.model_copy(update={"max_reports_per_second": 0.1})
    transport = serve(replace(THREADS, limits=limits))
    asked = [ScriptedClient(transport, join_request(name)).joined.report_seconds for name in ("a", "b")]
    assert asked == [10.0, 20.0]
