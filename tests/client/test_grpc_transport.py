from __future__ import annotations

import shutil
import socket
import subprocess
from pathlib import Path
from typing import Any

import grpc
import pytest
from tests.client.agents import SETTINGS, seen, steps
from tests.client.fake_server import FakeServer, some_weights
from tests.client.grpc_server import listening
from tests.client.waiting import until

from rl4sys.client import Agent, ConnectError, SettingsError, connect
from rl4sys.client.tokens import Token
from rl4sys.wire import Failure, FailureReason
from rl4sys.wire.calls import CallFailed, Code


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


@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl to make a certificate with")
def test_a_token_in_a_file_can_be_replaced_and_is_kept_while_the_file_is_away(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("first\n")
    token = Token("first", file)
    assert token.current() == "first"
    (tmp_path / "next").write_text("the second\n")
    (tmp_path / "next").replace(file)
    assert token.current() == "the second"
    file.unlink()
    assert token.current() == "the second"


def test_with_tls_only_a_server_that_is_vouched_for_is_talked_to(tmp_path: Path) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    make = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    subprocess.run([*make, *names, "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True)
    credentials = grpc.ssl_server_credentials([(key.read_bytes(), certificate.read_bytes())])
    server = FakeServer()
    with listening(server, "127.0.0.1:0", credentials) as (address, _):
        with agent_at(address, tls={"ca": str(certificate)}, token="secret") as agent:
            play(agent, 2)
            assert agent.flush()
        with pytest.raises(ConnectError, match="No answer"):
            agent_at(address, tls={}, timeout=0.5)
    assert [s.steps for s in server.segments()] == [2]


def test_a_failure_keeps_its_code_its_reason_and_its_words() -> None:
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


def test_a_server_that_goes_and_comes_back_is_found_again(tmp_path: Path) -> None:
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


def test_nobody_at_the_address_is_one_clear_error() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{unused.getsockname()[1]}"
        with pytest.raises(ConnectError, match=rf"No answer from the server {address} within 0\.3 s"):
            agent_at(address, timeout=0.3)


def test_a_listener_that_never_answers_is_left_after_the_timeout() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(ConnectError, match="No answer"):
            agent_at(address, timeout=0.3)


def test_a_certificate_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"absent\.pem cannot be read"):
        agent_at("127.0.0.1:1", tls={"ca": str(tmp_path / "absent.pem")})
