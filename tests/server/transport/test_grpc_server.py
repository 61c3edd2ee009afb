from __future__ import annotations

import dataclasses
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import numpy as np
import pytest
from google.protobuf.wrappers_pb2 import StringValue, UInt32Value
from tests.records.failpoint_files import FailpointFiles
from tests.records.test_group_commit import Gate, hold
from tests.server.clients import PPO, ScriptedClient, acknowledged, eventually, join_request
from tests.server.loopback import StubTransport
from tests.server.workers.test_fold import local_learner, wait_for_version

from rl4sys.records import DiskFiles
from rl4sys.server import GrpcServer, ImpossibleSetup, ServerOptions, ServiceOptions, TrainingService
from rl4sys.server.service.readiness import Readiness
from rl4sys.server.transport import grpc_server, grpc_servicer, health
from rl4sys.server.transport.access_files import AccessFiles
from rl4sys.server.transport.server_process import serve_metrics
from rl4sys.wire import FailureReason
from rl4sys.wire.calls import CallFailed, Code
from rl4sys.wire.generated import status_pb2, training_pb2

TOKEN, OTHER = "a" * 20, "b" * 20
THREADS = ServiceOptions(workers="threads")


@pytest.fixture
def listen(tmp_path: Path) -> Iterator[Callable[..., GrpcServer]]:
    servers: list[GrpcServer] = []

    def start(token_file: Path | None = None) -> GrpcServer:
        options = ServerOptions("127.0.0.1:0", tmp_path / "data", token_file, service=THREADS)
        servers.append(GrpcServer(options))
        return servers[-1]

    yield start
    for server in servers:
        server.drain()


def test_a_client_learns_over_a_real_socket(listen: Callable[..., GrpcServer]) -> None:
    server = listen()
    transport = StubTransport(server.port)
    client = ScriptedClient(transport, join_request("a"))
    watching = transport.watch(training_pb2.WatchRequest(session=client.joined.session, have=0))
    assert acknowledged(client.push(range(8))) == list(range(8))
    assert next(iter(watching)).version >= 1
    watching.cancel()
    expected = local_learner(PPO, 8).store.newest
    wait_for_version(client, expected.number)
    np.testing.assert_array_equal(client.weights(), expected.blob)
    transport.close()


def test_a_failure_keeps_its_code_and_reason(listen: Callable[..., GrpcServer]) -> None:
    transport = StubTransport(listen().port)
    with pytest.raises(CallFailed, match="Join again") as failed:
        transport.push(training_pb2.PushRequest(session="forged"), 5.0)
    assert failed.value.code is Code.FAILED_PRECONDITION
    assert failed.value.failure.reason is FailureReason.UNKNOWN_SESSION
    transport.close()


def test_bytes_that_are_not_a_message_are_refused(listen: Callable[..., GrpcServer]) -> None:
    with grpc.insecure_channel(f"127.0.0.1:{listen().port}") as channel:
        call = channel.unary_unary("/rl4sys.v1.Training/Push")
        with pytest.raises(grpc.RpcError) as failed:
            call(b"\xff" * 64, timeout=5.0)
    assert failed.value.code() is grpc.StatusCode.INVALID_ARGUMENT


def test_health_needs_no_token(listen: Callable[..., GrpcServer], tmp_path: Path) -> None:
    (tmp_path / "tokens").write_text(f"{TOKEN} a\n")
    with grpc.insecure_channel(f"127.0.0.1:{listen(tmp_path / 'tokens').port}") as channel:
        call = channel.unary_unary("/grpc.health.v1.Health/Check")
        reply = call(StringValue(value="rl4sys.v1.Training").SerializeToString(), timeout=5.0)
    assert UInt32Value.FromString(reply).value == 1


def calls(transport: StubTransport, session: str) -> dict[str, Callable[[], object]]:
    return {
        "Join": lambda: transport.join(join_request("a"), 60.0),
        "Push": lambda: transport.push(training_pb2.PushRequest(session=session), 5.0),
        "Pull": lambda: list(transport.pull(training_pb2.PullRequest(session=session), 5.0)),
        "Watch": lambda: next(iter(transport.watch(training_pb2.WatchRequest(session=session)))),
        "Act": lambda: transport.act(training_pb2.ActRequest(session=session), 5.0),
        "Report": lambda: transport.report(training_pb2.ReportRequest(session=session), 5.0),
        "Status": lambda: transport.status(status_pb2.StatusRequest(), 5.0),
    }


def test_no_call_gets_through_without_the_right_token(listen: Callable[..., GrpcServer], tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text(f"# ours\n{TOKEN} a\n{OTHER} b b-*\n{'c' * 20} expires=2020-01-01 a\n{'d' * 20} a\n")
    port = listen(file).port
    session = ScriptedClient(StubTransport(port, TOKEN), join_request("a")).joined.session
    StubTransport(port, "d" * 20).status(status_pb2.StatusRequest(), 5.0)
    file.write_text(file.read_text().replace(f"{'d' * 20} a\n", ""))
    for token in (None, "", "e" * 20, "c" * 20, "d" * 20):
        for name, call in calls(StubTransport(port, token), session).items():
            with pytest.raises(CallFailed) as failed:
                call()
            assert failed.value.code is Code.UNAUTHENTICATED, (token, name)
    for name, call in calls(StubTransport(port, OTHER), session).items():
        if name != "Status":
            with pytest.raises(CallFailed) as failed:
                call()
            assert failed.value.code is Code.PERMISSION_DENIED, name


@pytest.mark.parametrize("listen_on", ["0.0.0.0:50051", "[::]:50051", "example.org:50051"])
def test_listening_for_other_machines_needs_tls_and_tokens_or_insecure(listen_on: str, tmp_path: Path) -> None:
    with pytest.raises(ImpossibleSetup, match="--insecure"):
        ServerOptions(listen_on)
    with pytest.raises(ImpossibleSetup, match="--insecure"):
        ServerOptions(listen_on, token_file=tmp_path)
    ServerOptions(listen_on, insecure=True)
    ServerOptions(listen_on, token_file=tmp_path, tls_cert=tmp_path, tls_key=tmp_path)


def test_a_draining_server_ends_its_watches_and_saves(tmp_path: Path) -> None:
    server = GrpcServer(ServerOptions("127.0.0.1:0", tmp_path, service=THREADS))
    client = ScriptedClient(StubTransport(server.port), join_request("a"))
    client.push(range(5))
    watching = client.transport.watch(training_pb2.WatchRequest(session=client.joined.session, have=0))
    server.drain()
    with pytest.raises(CallFailed) as failed:
        list(watching)
    assert failed.value.code is Code.UNAVAILABLE
    assert len(list((tmp_path / "learners" / "a" / "checkpoints").glob("0*"))) == 1


def test_a_push_that_waits_for_the_disk_is_answered_by_a_draining_server(tmp_path: Path) -> None:
    gate = Gate()
    service = dataclasses.replace(THREADS, files=FailpointFiles(DiskFiles(), gate))
    server = GrpcServer(ServerOptions("127.0.0.1:0", tmp_path, service=service))
    client = ScriptedClient(StubTransport(server.port), join_request("a"))
    hold(gate)
    with ThreadPoolExecutor(2) as threads:
        waiting = threads.submit(client.push, [0])
        assert gate.reached.wait(30)
        draining = threads.submit(server.drain)
        eventually(lambda: not server.service.readiness().is_ready)
        with pytest.raises(CallFailed, match="shutting down"):
            client.push([1])
        gate.open.set()
        assert acknowledged(waiting.result(30)) == [0]
        draining.result(30)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="makes its certificate with openssl")
def test_a_client_with_tls_and_a_token_is_let_in(tmp_path: Path) -> None:
    cert, key, tokens = tmp_path / "cert.pem", tmp_path / "key.pem", tmp_path / "tokens"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 1 -subj /CN=localhost"
    command += f" -addext subjectAltName=DNS:localhost -keyout {key} -out {cert}"
    subprocess.run(command.split(), check=True, capture_output=True)
    tokens.write_text(f"{TOKEN} a\n")
    server = GrpcServer(ServerOptions("127.0.0.1:0", tmp_path / "data", tokens, cert, key, service=THREADS))
    try:
        trust = grpc.ssl_channel_credentials(cert.read_bytes())
        with grpc.secure_channel(f"localhost:{server.port}", trust) as channel:
            call = channel.unary_unary("/rl4sys.v1.Training/Status")
            reply = call(b"", timeout=10.0, metadata=(("authorization", f"Bearer {TOKEN}"),))
        assert status_pb2.StatusReply.FromString(reply).server.protocol == 1
        with pytest.raises(CallFailed):
            StubTransport(server.port, TOKEN).status(status_pb2.StatusRequest(), 3.0)
    finally:
        server.drain()


def test_an_open_stream_ends_when_its_token_is_revoked(
    listen: Callable[..., GrpcServer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grpc_servicer, "_LOOK_SECONDS", 0.02)
    file = tmp_path / "tokens"
    file.write_text(f"{TOKEN} a\n")
    transport = StubTransport(listen(file).port, TOKEN)
    session = transport.join(join_request("a"), 60.0).session
    watching = iter(transport.watch(training_pb2.WatchRequest(session=session)))
    assert next(watching).version == 0
    file.write_text("# no tokens\n")
    with pytest.raises(CallFailed) as failed:
        next(watching)
    assert failed.value.code is Code.UNAUTHENTICATED
    transport.close()


def test_health_watchers_without_a_token_leave_calls_for_clients_with_one(
    listen: Callable[..., GrpcServer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "MAX_WATCHERS", 2)
    (tmp_path / "tokens").write_text(f"{TOKEN} a\n")
    port = listen(tmp_path / "tokens").port
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        watch = channel.unary_stream("/grpc.health.v1.Health/Watch")
        streams = [watch(b"", timeout=20.0) for _ in range(2)]
        assert [UInt32Value.FromString(next(stream)).value for stream in streams] == [1, 1]
        with pytest.raises(grpc.RpcError) as failed:
            next(watch(b"", timeout=20.0))
        assert failed.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert StubTransport(port, TOKEN).status(status_pb2.StatusRequest(), 5.0).server.protocol == 1


def test_health_watchers_hear_that_the_server_drains(tmp_path: Path) -> None:
    server = GrpcServer(ServerOptions("127.0.0.1:0", tmp_path, service=THREADS))
    with grpc.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        states = channel.unary_stream("/grpc.health.v1.Health/Watch")(b"", timeout=20.0)
        first = next(states)
        draining = threading.Thread(target=server.drain)
        draining.start()
        second = next(states)
        draining.join()
    assert [UInt32Value.FromString(state).value for state in (first, second)] == [1, 2]


def test_a_missing_package_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("grpc_health.v1", "prometheus_client"):
        monkeypatch.setitem(sys.modules, module, None)
    for module in ("health", "metrics", "metrics_server"):
        monkeypatch.delitem(sys.modules, f"rl4sys.server.transport.{module}", raising=False)
    options = ServerOptions("127.0.0.1:0", tmp_path, service=THREADS, metrics_port=0)
    with pytest.raises(ImpossibleSetup, match=r"needs the package 'grpc_health'.*pip install 'rl4sys\[serve\]'"):
        GrpcServer(options)
    with (
        pytest.raises(ImpossibleSetup, match=r"needs the package 'prometheus_client'.*pip install 'rl4sys\[serve\]'"),
        serve_metrics(options, AccessFiles(None, None, None, None)),
    ):
        pass


def test_refused_calls_are_counted_by_code(listen: Callable[..., GrpcServer], tmp_path: Path) -> None:
    (tmp_path / "tokens").write_text(f"{TOKEN} a\n")
    server = listen(tmp_path / "tokens")
    with grpc.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        push = channel.unary_unary("/rl4sys.v1.Training/Push")
        for metadata in ((), (("authorization", f"Bearer {TOKEN}"),)):
            with pytest.raises(grpc.RpcError):
                push(b"\xff" * 64, timeout=5.0, metadata=metadata)
    with pytest.raises(CallFailed):
        StubTransport(server.port, TOKEN).status(status_pb2.StatusRequest(learner="unknown"), 5.0)
    assert server.service.calls == {
        ("Push", "UNAUTHENTICATED"): 1,
        ("Push", "INVALID_ARGUMENT"): 1,
        ("Status", "NOT_FOUND"): 1,
    }
    assert dict(server.service.current_status().server.failed_calls) == {
        "UNAUTHENTICATED": 1,
        "INVALID_ARGUMENT": 1,
        "NOT_FOUND": 1,
    }


def test_health_follows_whether_experience_can_be_stored(
    listen: Callable[..., GrpcServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grpc_server, "_HEALTH_SECONDS", 0.01)
    state = ["storage_failed"]
    monkeypatch.setattr(TrainingService, "readiness", lambda _: Readiness(state[0]))
    with grpc.insecure_channel(f"127.0.0.1:{listen().port}") as channel:
        call = channel.unary_unary("/grpc.health.v1.Health/Check")

        def health(service: str) -> int:
            request = StringValue(value=service).SerializeToString()
            return int(UInt32Value.FromString(call(request, timeout=10.0)).value)

        eventually(lambda: [health(""), health("rl4sys.v1.Training")] == [2, 2])
        state[0] = "serving"
        eventually(lambda: [health(""), health("rl4sys.v1.Training")] == [1, 1])


def test_a_server_whose_calls_hang_is_not_responsive(listen: Callable[..., GrpcServer]) -> None:
    server, let_go = listen(), threading.Event()
    assert server.is_responsive()
    server._loop.call_soon_threadsafe(let_go.wait)
    assert not server.is_responsive(0.05)
    let_go.set()
    assert server.is_responsive()
