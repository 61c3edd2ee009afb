from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.server.clients import ScriptedClient, acknowledged, eventually, join_request
from tests.server.operators import Operator

from rl4sys.server import InProcessTransport
from rl4sys.server.access.caller import Caller, Role
from rl4sys.wire.calls import CallFailed, Code
from rl4sys.wire.generated import status_pb2, training_pb2

Serve = Callable[..., InProcessTransport]
OFF = training_pb2.CONTROL_MODE_OFF


def learner_status(client: ScriptedClient) -> status_pb2.LearnerStatus:
    request = status_pb2.StatusRequest(learner=client.joined.learner)
    return client.transport.status(request, 5.0).learners[0]


def test_a_paused_learner_stores_what_arrives_and_learns_from_it_later(serve: Serve) -> None:
    client = ScriptedClient(serve(), join_request("a"))
    Operator(client.transport).manage("a", "pause")
    assert acknowledged(client.push(range(8))) == list(range(8))
    status = learner_status(client)
    assert (status.state, status.version, status.queued_segments) == (status_pb2.LEARNER_STATE_PAUSED, 0, 8)
    Operator(client.transport).manage("a", "resume")
    eventually(lambda: learner_status(client).version == 2)


def test_a_learner_stays_paused_when_the_server_restarts(serve: Serve) -> None:
    client = ScriptedClient(serve(), join_request("a"))
    Operator(client.transport).manage("a", "pause")
    client.push(range(8))
    client = ScriptedClient(serve(), join_request("a"))
    eventually(lambda: learner_status(client).state != status_pb2.LEARNER_STATE_STARTING)
    status = learner_status(client)
    assert (status.state, status.version, status.queued_segments) == (status_pb2.LEARNER_STATE_PAUSED, 0, 8)
    Operator(client.transport).manage("a", "resume")
    eventually(lambda: learner_status(client).version == 2)


def test_an_order_reaches_joins_reports_watches_and_the_status(serve: Serve) -> None:
    client = ScriptedClient(serve(), join_request("a"))
    session = client.joined.session
    watching = iter(client.transport.watch(training_pb2.WatchRequest(session=session, have=0, control=True)))
    order = Operator(client.transport).control("a", OFF, "bad actions").control
    assert next(watching).control == order
    assert client.transport.join(join_request("a"), 5.0).control == order
    report = training_pb2.ReportRequest(session=session)
    report.report.control_sequence = order.sequence
    assert client.transport.report(report, 5.0).control == order
    status = learner_status(client)
    assert (status.control, status.control_reason, status.obeying_clients) == ("off", "bad actions", 1)


def test_a_watch_starts_with_the_order_in_force_and_continues_with_versions(serve: Serve) -> None:
    client = ScriptedClient(serve(), join_request("a"))
    Operator(client.transport).control("a", OFF, "why")
    watching = client.transport.watch(
        training_pb2.WatchRequest(session=client.joined.session, have=0, control=True, max_patch_bytes=1 << 20)
    )
    news = iter(watching)
    assert next(news).control.mode == OFF
    client.push(range(4))
    found = next(news)
    watching.cancel()
    assert (found.version, found.HasField("control")) == (1, False)


def test_a_watch_without_control_gets_no_orders(serve: Serve) -> None:
    client = ScriptedClient(serve(), join_request("a"))
    Operator(client.transport).control("a", OFF, "why")
    watching = client.transport.watch(training_pb2.WatchRequest(session=client.joined.session, have=0))
    client.push(range(4))
    found = next(iter(watching))
    watching.cancel()
    assert not found.HasField("control")


def test_an_order_without_a_reason_is_refused(serve: Serve) -> None:
    client = ScriptedClient(serve(), join_request("a"))
    with pytest.raises(CallFailed, match="Say why") as failed:
        Operator(client.transport).control("a", OFF, " ")
    assert failed.value.code is Code.INVALID_ARGUMENT
    assert learner_status(client).control == "follow"


@pytest.mark.parametrize("role", [Role.VIEWER, Role.CLIENT])
def test_only_operators_may_command(serve: Serve, role: Role) -> None:
    client = ScriptedClient(serve(), join_request("a"))
    other = Operator(client.transport, Caller(role=role, token="t1"))
    for command in (lambda: other.control("a", OFF, "why"), lambda: other.manage("a", "pause"), other.audit):
        with pytest.raises(CallFailed, match="needs the role operator") as failed:
            command()
        assert failed.value.code is Code.PERMISSION_DENIED
    status = learner_status(client)
    assert (status.control, status.state) == ("follow", status_pb2.LEARNER_STATE_WAITING)


def test_an_operator_manages_only_the_learners_of_its_token(serve: Serve) -> None:
    client = ScriptedClient(serve(), join_request("a"))
    other = Operator(client.transport, Caller(patterns=("b*",), role=Role.OPERATOR, token="t1"))
    with pytest.raises(CallFailed, match="There is none yet") as failed:
        other.manage("a", "pause")
    assert failed.value.code is Code.NOT_FOUND
    assert other.audit() == []


def test_every_command_is_in_the_audit_log_also_a_refused_one(serve: Serve, tmp_path: Path) -> None:
    client = ScriptedClient(serve(), join_request("a"))
    Operator(client.transport).control("a", OFF, "bad actions")
    with pytest.raises(CallFailed, match="did you mean"):
        Operator(client.transport).manage("aa", "pause")
    with pytest.raises(CallFailed):
        Operator(client.transport, Caller(role=Role.CLIENT, name="eve", token="t1")).manage("a", "pause")
    off, unknown, refused = Operator(client.transport).audit()
    assert (off.command, off.learner, off.reason, off.result) == ("control", "a", "bad actions", "OK")
    assert (off.operator_name, off.role, off.arguments_json) == ("tester", "operator", '{"mode": "off"}')
    assert (unknown.command, unknown.learner, unknown.result) == ("pause", "aa", "NOT_FOUND")
    assert (refused.who, refused.role, refused.result) == ("eve", "client", "PERMISSION_DENIED")
    assert len((tmp_path / "data" / "audit.jsonl").read_bytes().splitlines()) == 3
