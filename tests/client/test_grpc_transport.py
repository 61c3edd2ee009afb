from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pytest
from tests.client.agents import SETTINGS, seen, steps
from tests.client.fake_server import FakeServer, some_weights
from tests.client.grpc_server import Servicer, listening
from tests.client.waiting import until
from tests.pem_files import make_certificate, needs_openssl

from rl4sys.client import Agent, ConnectError, SettingsError, connect
from rl4sys.client.tokens import Token
from rl4sys.wire import Failure, FailureReason
from rl4sys.wire.calls import CallFailed, Code
from rl4sys.wire.generated import training_pb2


def agent_at(address: str, **settings: Any) -> Agent:
    return connect(SETTINGS | {"server": address} | settings)


def play(agent: Agent, length: int) -> None:
    with agent.episode() as episode:
        steps(episode, length)
        episode.end(seen(length))


@pytest.mark.parametrize("kind", ["tcp", "unix"])
def test_an_agent_learns_over_a_real_connection(kind: str, tmp_path: Path) -> None:
    server = FakeServer()
    place = "127.0.0.1:0" if kind == "tcp" else f"unix:{tmp_path}/socket"
    with listening(server, place) as (address, servicer), agent_at(address, token="secret") as agent:
        play(agent, 5)
        assert agent.flush()
        version = server.publish(some_weights(server.spec, 1))
        until(lambda: agent.health().version == version)
        assert servicer.tokens == ["Bearer secret"]
    assert [s.steps for s in server.segments()] == [5]


def test_a_token_file_can_be_replaced_and_the_token_is_kept_while_the_file_is_missing(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("first\n")
    token = Token("first", file)
    assert token.current() == "first"
    (tmp_path / "next").write_text("the second\n")
    (tmp_path / "next").replace(file)
    assert token.current() == "the second"
    file.unlink()
    assert token.current() == "the second"


@needs_openssl
def test_with_tls_only_a_server_with_a_trusted_certificate_is_connected_to(tmp_path: Path) -> None:
    certificate, key = make_certificate(tmp_path, "server")
    credentials = grpc.ssl_server_credentials([(key.read_bytes(), certificate.read_bytes())])
    server = FakeServer()
    with listening(server, "127.0.0.1:0", credentials) as (address, _):
        with agent_at(address, tls={"ca": str(certificate)}, token="secret") as agent:
            play(agent, 2)
            assert agent.flush()
        with pytest.raises(ConnectError, match="The certificate of the server is not trusted"):
            agent_at(address, tls={}, timeout=300)
    assert [s.steps for s in server.segments()] == [2]


def test_a_failure_keeps_its_code_reason_and_message() -> None:
    server = FakeServer()

    def refuse(call: str) -> None:
        raise CallFailed(Code.FAILED_PRECONDITION, "sees something else", Failure(FailureReason.OTHER_LEARNER))

    server.before = refuse
    with (
        listening(server, "127.0.0.1:0") as (address, _),
        pytest.raises(ConnectError, match="sees something else") as caught,
    ):
        agent_at(address)
    assert isinstance(caught.value.__cause__, CallFailed)
    assert caught.value.__cause__.failure.reason is FailureReason.OTHER_LEARNER


def test_an_agent_reconnects_to_a_server_that_comes_back(tmp_path: Path) -> None:
    server = FakeServer()
    place = f"unix:{tmp_path}/socket"
    with listening(server, place) as (address, _):
        agent = agent_at(address)
        play(agent, 1)
        assert agent.flush()
    play(agent, 2)
    until(lambda: not agent.health().connected)
    server.restart()
    with listening(server, place):
        assert agent.flush(8.0)
        agent.close()
    assert [s.steps for s in server.segments()] == [1, 2]


def test_an_address_without_a_server_is_one_clear_error() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{unused.getsockname()[1]}"
        with pytest.raises(ConnectError, match=rf"No answer from the server {address} within 0\.3 s"):
            agent_at(address, timeout=0.3)


def test_a_server_that_never_answers_is_given_up_after_the_timeout() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(ConnectError, match="No answer"):
            agent_at(address, timeout=0.3)


def test_a_certificate_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"absent\.pem cannot be read"):
        agent_at("127.0.0.1:1", tls={"ca": str(tmp_path / "absent.pem")})


class EndedCall:
    """The context of a call that the client cancelled before the server registered a callback."""

    def add_callback(self, callback: Callable[[], None]) -> bool:
        return False


def test_a_watch_of_a_call_that_has_already_ended_does_not_wait() -> None:
    server = FakeServer()
    with connect(SETTINGS, server):
        (session,) = server._sessions
        request = training_pb2.WatchRequest(session=session, have=0)
        context: Any = EndedCall()
        assert list(Servicer(server).Watch(request, context)) == []
