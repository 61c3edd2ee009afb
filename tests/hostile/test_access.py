"""Callers without permission are refused and learn nothing: tokens for every call, TLS on both sides."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.wrappers_pb2 import UInt32Value
from tests.client.agents import SETTINGS
from tests.hostile.attacks import RPCS
from tests.hostile.certificates import Authority
from tests.server.clients import ScriptedClient, join_request
from tests.server.loopback import StubTransport

from rl4sys.client import ConnectError, connect
from rl4sys.server import GrpcServer, ServerOptions, ServiceOptions
from rl4sys.wire.generated import status_pb2, training_pb2

OWN, OTHER, EXPIRED, REVOKED = "own-" * 6, "other-" * 5, "expired-" * 4, "revoked-" * 4
THREADS = ServiceOptions("threads")
METADATA: dict[str, tuple[tuple[str, str | bytes], ...]] = {
    "none": (),
    "empty": (("authorization", ""),),
    "of another scheme": (("authorization", f"Basic {OWN}"),),
    "without a scheme": (("authorization", OWN),),
    "malformed": (("authorization", f"Bearer  {OWN}"),),
    "a part of one": (("authorization", f"Bearer {OWN[:-1]}"),),
    "two at once": (("authorization", f"Bearer {OWN}"), ("authorization", f"Bearer {OTHER}")),
    "giant": (("authorization", f"Bearer {'x' * 4_000}"),),
    "under another name": (("authorization-bin", f"Bearer {OWN}".encode()),),
    "unknown": (("authorization", f"Bearer {'guess-' * 5}"),),
    "expired": (("authorization", f"Bearer {EXPIRED}"),),
    "revoked": (("authorization", f"Bearer {REVOKED}"),),
}


@pytest.fixture
def closed(tmp_path: Path) -> Iterator[tuple[int, str]]:
    """The port of a server with tokens, and a session of the client `own-client` there."""
    tokens = tmp_path / "tokens"
    kept = f"{OWN} own-client\n{OTHER} other-client\n{EXPIRED} expires=2020-01-01 *\n"
    tokens.write_text(f"{kept}{REVOKED} *\n")
    server = GrpcServer(ServerOptions("127.0.0.1:0", tmp_path / "data", tokens, service=THREADS))
    try:
        transport = StubTransport(server.port, OWN)
        session = ScriptedClient(transport, join_request("own-client")).joined.session
        transport.close()
        revoked = StubTransport(server.port, REVOKED)
        revoked.status(status_pb2.StatusRequest(), 10.0)
        revoked.close()
        tokens.write_text(kept)
        yield server.port, session
    finally:
        server.drain()


def requests(session: str) -> dict[str, bytes]:
    """A request for every call, valid except for the token."""
    messages: dict[str, Any] = {
        "Join": join_request("own-client"),
        "Push": training_pb2.PushRequest(session=session),
        "Pull": training_pb2.PullRequest(session=session),
        "Watch": training_pb2.WatchRequest(session=session),
        "Act": training_pb2.ActRequest(session=session),
        "Report": training_pb2.ReportRequest(session=session),
        "Status": status_pb2.StatusRequest(),
    }
    return {rpc: message.SerializeToString() for rpc, message in messages.items()}


def attempt(port: int, rpc: str, data: bytes, metadata: Any) -> tuple[grpc.StatusCode, str]:
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        path = f"/rl4sys.v1.Training/{rpc}"
        try:
            if rpc in ("Pull", "Watch"):
                next(channel.unary_stream(path)(data, timeout=30.0, metadata=metadata))
            else:
                channel.unary_unary(path)(data, timeout=30.0, metadata=metadata)
        except grpc.RpcError as error:
            return error.code(), str(error.details())
    return grpc.StatusCode.OK, ""


def secrets_in(text: str, session: str) -> list[str]:
    """What a refusal must not reveal: tokens, sessions, clients, learners, paths, code."""
    telling = (OWN, OTHER, EXPIRED, REVOKED, session, "own-client", "other-client", "/", "Traceback", ".py", "rl4sys.")
    return [word for word in telling if word in text]


def test_every_call_is_refused_without_a_valid_token(closed: tuple[int, str]) -> None:
    port, session = closed
    for kind, metadata in METADATA.items():
        for rpc, data in requests(session).items():
            code, details = attempt(port, rpc, data, metadata)
            assert code is grpc.StatusCode.UNAUTHENTICATED, (rpc, kind, details)
            assert secrets_in(details, session) == [], (rpc, kind, details)


def test_malformed_bytes_are_not_parsed_without_a_token(closed: tuple[int, str]) -> None:
    port, session = closed
    for rpc in RPCS:
        code, details = attempt(port, rpc, b"\xff" * 50, METADATA["none"])
        assert (code, secrets_in(details, session)) == (grpc.StatusCode.UNAUTHENTICATED, []), rpc


def test_the_token_of_another_client_allows_no_call(closed: tuple[int, str]) -> None:
    port, session = closed
    for rpc, data in requests(session).items():
        code, details = attempt(port, rpc, data, (("authorization", f"Bearer {OTHER}"),))
        if rpc == "Status":
            # It belongs to no client: every token of the server may call it.
            assert code is grpc.StatusCode.OK
            continue
        assert code is grpc.StatusCode.PERMISSION_DENIED, (rpc, details)
        # Names in the request may be repeated; the owner of the session must not be revealed.
        allowed = ["own-client"] if rpc == "Join" else []
        assert secrets_in(details, session) == allowed, (rpc, details)


def test_the_right_token_allows_every_call(closed: tuple[int, str]) -> None:
    port, session = closed
    for rpc, data in requests(session).items():
        code, details = attempt(port, rpc, data, (("authorization", f"Bearer {OWN}"),))
        # Empty pushes and requests are let in, and then refused as invalid.
        assert code not in (grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED), (rpc, details)


def test_only_health_is_open_without_a_token(closed: tuple[int, str]) -> None:
    """Load balancers have no tokens; health only reveals that the server takes calls."""
    with grpc.insecure_channel(f"127.0.0.1:{closed[0]}") as channel:
        reply = channel.unary_unary("/grpc.health.v1.Health/Check")(b"", timeout=10.0)
        assert UInt32Value.FromString(reply).value == 1
        with pytest.raises(grpc.RpcError) as refused:
            channel.unary_unary("/rl4sys.v1.Training/Shutdown")(b"", timeout=10.0)
    assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED


needs_openssl = pytest.mark.skipif(shutil.which("openssl") is None, reason="makes its certificates with openssl")


@pytest.fixture(scope="module")
def authorities(tmp_path_factory: pytest.TempPathFactory) -> tuple[Authority, Authority]:
    directory = tmp_path_factory.mktemp("certificates")
    return Authority(directory, "ours"), Authority(directory, "theirs")


@pytest.fixture
def secure(tmp_path: Path, authorities: tuple[Authority, Authority]) -> Iterator[Callable[..., str]]:
    servers: list[GrpcServer] = []
    (tmp_path / "tokens").write_text(f"{OWN} test\n")

    def start(mutual: bool) -> str:
        ours = authorities[0]
        pair = ours.sign("server")
        authority = ours.cert if mutual else None
        options = ServerOptions(
            "127.0.0.1:0", tmp_path / "data", tmp_path / "tokens", pair.cert, pair.key, authority, service=THREADS
        )
        servers.append(GrpcServer(options))
        return f"127.0.0.1:{servers[0].port}"

    yield start
    for server in servers:
        server.drain()


def connects(address: str, tls: dict[str, str] | None, seconds: float) -> None:
    settings = SETTINGS | {"server": address, "token": OWN, "timeout": seconds, "algorithm": "ppo"}
    with connect(settings if tls is None else settings | {"tls": tls}) as agent:
        assert agent.health().learner == "test"


@needs_openssl
def test_tls_lets_in_clients_that_trust_the_server_and_the_others_get_the_reason(
    secure: Callable[..., str], authorities: tuple[Authority, Authority]
) -> None:
    ours, theirs = authorities
    address = secure(mutual=False)
    connects(address, {"ca": str(ours.cert)}, 60)
    for tls in ({"ca": str(theirs.cert)}, {}):
        with pytest.raises(ConnectError, match=r"(?i)certificate|handshake|ssl"):
            connects(address, tls, 1.0)
    with pytest.raises(ConnectError, match="within 1 s"):
        connects(address, None, 1.0)


@needs_openssl
def test_mutual_tls_lets_in_only_clients_that_the_server_trusts(
    secure: Callable[..., str], authorities: tuple[Authority, Authority]
) -> None:
    ours, theirs = authorities
    address = secure(mutual=True)
    good, bad = ours.sign("client"), theirs.sign("client")
    connects(address, {"ca": str(ours.cert), "cert": str(good.cert), "key": str(good.key)}, 60)
    for tls, why in (
        ({"ca": str(ours.cert)}, "within 1 s"),
        ({"ca": str(ours.cert), "cert": str(bad.cert), "key": str(bad.key)}, "within 1 s"),
        ({"ca": str(theirs.cert), "cert": str(good.cert), "key": str(good.key)}, "server is not trusted"),
    ):
        with pytest.raises(ConnectError, match=why):
            connects(address, tls, 1.0)
