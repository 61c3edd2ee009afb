"""The status of a server, and `rl4sys status`."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rich.console import Console
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tests.server.clients import ScriptedClient, eventually, join_request
from tests.server.conftest import THREADS
from tests.server.loopback import StubTransport
from typer.testing import CliRunner

from rl4sys.cli import output
from rl4sys.cli import status as command
from rl4sys.cli.commands import build
from rl4sys.operations.status_tables import clients, learners, message_values, summary
from rl4sys.server import GrpcServer, InProcessTransport, ServerOptions
from rl4sys.server.access.caller import Caller
from rl4sys.wire.calls import CallFailed, Code
from rl4sys.wire.generated import status_pb2, training_pb2

Serve = Callable[..., InProcessTransport]


def status(transport: InProcessTransport) -> status_pb2.StatusReply:
    return transport.status(status_pb2.StatusRequest(), 5.0)


def test_stored_segments_are_counted_by_learner_and_client_across_restarts(serve: Serve) -> None:
    transport = serve()
    for name in "ab":
        ScriptedClient(transport, join_request(name, policy_id="fleet")).push(range(3))
    before = status(transport)
    after = status(serve())
    for reply in (before, after):
        (learner,) = reply.learners
        assert (learner.stored_segments, learner.stored_steps) == (6, 48)
        assert [(each.client, each.stored_segments, each.stored_steps) for each in reply.clients] == [
            ("a", 3, 24),
            ("b", 3, 24),
        ]
    assert after.learners[0].stored_bytes == before.learners[0].stored_bytes > 0
    assert [each.stored_bytes for each in after.clients] == [each.stored_bytes for each in before.clients]


def test_a_client_that_has_not_called_since_the_start_is_listed_as_not_connected(serve: Serve) -> None:
    ScriptedClient(serve(), join_request("a")).push([0])
    transport = serve()
    remembered = status(transport)
    assert (remembered.server.connected_clients, remembered.clients[0].connected) == (0, False)
    assert remembered.learners[0].clients == 0
    ScriptedClient(transport, join_request("a"))
    returned = status(transport)
    assert (returned.server.connected_clients, returned.clients[0].connected) == (1, True)
    assert returned.learners[0].clients == 1


def test_a_client_whose_last_stream_ended_is_disconnected_until_it_opens_another(serve: Serve) -> None:
    transport = serve()
    client = ScriptedClient(transport, join_request("node"))
    request = training_pb2.WatchRequest(session=client.joined.session)

    def disconnected() -> bool:
        return status(transport).clients[0].HasField("disconnected_seconds")

    assert not disconnected()
    first, second = transport.watch(request), transport.watch(request)
    first.cancel()
    assert not disconnected()
    second.cancel()
    assert disconnected()
    transport.watch(request)
    assert not disconnected()


def test_the_age_of_a_checkpoint_is_reported_even_after_a_restart(serve: Serve) -> None:
    client = ScriptedClient(serve(), join_request("a"))
    client.push([0])
    assert not status(client.transport).learners[0].HasField("checkpoint_age_seconds")
    transport = serve()
    ScriptedClient(transport, join_request("a"))
    eventually(lambda: status(transport).learners[0].HasField("checkpoint_age_seconds"))
    learner = status(transport).learners[0]
    assert 0 <= learner.checkpoint_age_seconds < 600


def test_what_was_learned_before_a_restart_is_reported_without_new_data(serve: Serve) -> None:
    client = ScriptedClient(serve(), join_request("a"))
    client.push(range(5))
    eventually(lambda: status(client.transport).learners[0].learned_steps == 40)
    before = status(client.transport).learners[0]
    transport = serve()
    ScriptedClient(transport, join_request("a"))
    eventually(lambda: status(transport).learners[0].updates > 0)
    after = status(transport).learners[0]
    assert (after.learned_steps, after.updates, after.episodes) == (40, before.updates, before.episodes)
    assert before.updates > 0
    assert after.mean_return == before.mean_return
    assert sum(outcome.episodes for outcome in before.outcomes) == before.episodes
    assert list(after.outcomes) == list(before.outcomes)


def test_checkpoints_are_listed_with_their_place_in_the_log(serve: Serve) -> None:
    client = ScriptedClient(serve(), join_request("a"))
    assert not status(client.transport).learners[0].checkpoints
    client.push(range(5))
    eventually(lambda: status(client.transport).learners[0].learned_steps == 40)
    learner = status(serve()).learners[0]
    (checkpoint,) = learner.checkpoints
    assert (checkpoint.position, learner.log_end) == (5, 5)
    assert abs(checkpoint.written - time.time()) < 600
    assert checkpoint.bytes > 1_000


def test_calls_are_counted_by_method_and_code(serve: Serve) -> None:
    client = ScriptedClient(serve(), join_request("a"))
    client.weights()
    client.joined.session = "forged"
    with pytest.raises(CallFailed):
        client.push([0])
    counted = {(call.method, call.code): call.count for call in status(client.transport).server.calls}
    assert counted == {("Join", "OK"): 1, ("Pull", "OK"): 1, ("Push", "FAILED_PRECONDITION"): 1}


def test_a_learner_writes_tensorboard_curves(serve: Serve, tmp_path: Path) -> None:
    transport = serve()
    client = ScriptedClient(transport, join_request("a"))
    client.push(range(150))
    eventually(lambda: status(transport).learners[0].queued_segments == 0)
    transport._service.drain()
    curves = EventAccumulator(str(tmp_path / "data" / "learners" / "a" / "tensorboard"))
    curves.Reload()
    tags = set(curves.Tags()["scalars"])
    assert {"rollout/return", "episodes", "version"} < tags
    assert any(tag.startswith("train/") for tag in tags)
    assert [point.step for point in curves.Scalars("version")] == [1_000]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[GrpcServer]:
    server = GrpcServer(ServerOptions("127.0.0.1:0", tmp_path / "data", service=THREADS))
    yield server
    server.drain()


@pytest.fixture
def busy(server: GrpcServer) -> GrpcServer:
    client = ScriptedClient(StubTransport(server.port), join_request("a"))
    client.push(range(4))
    client.push_bytes({9: b"junk"})
    eventually(lambda: server.service.current_status().learners[0].updates == 1)
    return server


def test_json_has_numbers_as_numbers_and_only_known_ones(busy: GrpcServer) -> None:
    answer = CliRunner().invoke(build(), ["status", f"127.0.0.1:{busy.port}", "--json"])
    found = json.loads(answer.stdout)
    assert found["server"]["state"] == "SERVER_STATE_SERVING"
    (learner,), (client,) = found["learners"], found["clients"]
    assert (learner["stored_segments"], learner["version"], learner["state"]) == (4, 1, "LEARNER_STATE_WAITING")
    assert isinstance(learner["mean_return"], float)
    assert client["refused_segments"] == {"MALFORMED": 1}
    assert "version" not in client
    assert "checkpoint_age_seconds" not in learner


def test_tables_show_rates_returns_load_and_failures(busy: GrpcServer) -> None:
    answer = CliRunner().invoke(build(), ["status", f"127.0.0.1:{busy.port}"])
    verdict, head, load, names, row, _, client = answer.stdout.splitlines()
    assert verdict == "well: 1 learner, 1 connected client"
    assert ", serving, up " in head
    assert "1 connected clients; cpu " in load
    for word in ("segments/s", "return", "cpu", "memory", "unused", "saved", "restarts", "problem"):
        assert word in names
    assert row.split()[:4] == ["a", "PPO", "cpu", "waiting"]
    assert "1 malformed" in client


def test_an_empty_status_can_be_shown() -> None:
    empty = message_values(status_pb2.StatusReply(server={}, learners=[{}], clients=[{}]))
    assert summary(empty)[1].startswith(", unspecified")
    for table in (learners(empty), clients(empty)):
        assert [len(table.names)] == [len(row) for row in table.rows]


class Watched:
    """A transport whose server is down for the second of three requests, after which watching ends."""

    def __init__(self) -> None:
        self.asked = 0

    def status(self, request: status_pb2.StatusRequest, timeout: float) -> status_pb2.StatusReply:
        self.asked += 1
        if self.asked == 2:
            raise CallFailed(Code.UNAVAILABLE, "gone")
        return status_pb2.StatusReply(server={"software": f"look {self.asked}"})

    def sleep(self, seconds: float) -> None:
        if self.asked == 3:
            raise KeyboardInterrupt


def watch(*, as_json: bool = False) -> None:
    watched = Watched()
    show = command._Show(watched, as_json=as_json, is_watching=True, sleep=watched.sleep)  # type: ignore[arg-type]
    with pytest.raises(KeyboardInterrupt):
        show.run()


def test_watching_through_a_pipe_prints_a_block_each_time(capsys: pytest.CaptureFixture[str]) -> None:
    watch()
    out = capsys.readouterr().out
    assert [word for word in ("look 1", "no answer: gone", "look 3") if word in out] == [
        "look 1",
        "no answer: gone",
        "look 3",
    ]
    assert "\x1b" not in out


def test_watching_as_json_prints_one_object_per_line(capsys: pytest.CaptureFixture[str]) -> None:
    watch(as_json=True)
    captured = capsys.readouterr()
    assert [json.loads(line)["server"]["software"] for line in captured.out.splitlines()] == ["look 1", "look 3"]
    assert "no answer: gone" in captured.err


def test_watching_in_a_terminal_overwrites_the_last_output(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(output, "console", Console(highlight=False, force_terminal=True, width=200))
    watch()
    out = capsys.readouterr().out
    assert "look 3" in out
    assert "\x1b[1A" in out


def test_a_token_sees_only_the_learners_and_clients_that_it_may_use(serve: Serve) -> None:
    service = serve()._service
    mine, other = Caller(("mine-*",)), Caller(("other",), policies=("fleet",))
    for name, policy_id, caller in (("mine-1", "", mine), ("other", "fleet", other), ("other", "", other)):
        ScriptedClient(InProcessTransport(service, caller), join_request(name, policy_id=policy_id)).push([0])
    seen = status(InProcessTransport(service, mine))
    assert [each.learner for each in seen.learners] == ["mine-1"]
    assert [each.client for each in seen.clients] == ["mine-1"]
    assert sorted(each.learner for each in status(InProcessTransport(service, other)).learners) == [
        "other",
        "shared~fleet",
    ]
    with pytest.raises(CallFailed, match=r"there are: mine-1\.") as failed:
        InProcessTransport(service, mine).status(status_pb2.StatusRequest(learner="other"), 5.0)
    assert failed.value.code is Code.NOT_FOUND
