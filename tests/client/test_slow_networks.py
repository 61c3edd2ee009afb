"""Servers that are far away, absent, or refuse to be reached."""

from __future__ import annotations

import socket
import time
from pathlib import Path
from typing import Any

import grpc
import pytest
from tests.client.agents import SETTINGS, seen, steps
from tests.client.delay_proxy import delayed
from tests.client.fake_server import FakeServer
from tests.client.grpc_server import listening
from tests.pem_files import make_certificate, needs_openssl

from rl4sys.client import ClientSettings, SettingsError, connect

FAR = [0.0, 0.1, *(pytest.param(seconds, marks=pytest.mark.slow) for seconds in (0.03, 0.3, 0.6))]
"""Round trips in seconds."""


@pytest.fixture
def nowhere() -> Any:
    """An address at which connections are refused."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{unused.getsockname()[1]}"


def learn_over(address: str, **settings: Any) -> None:
    with connect(SETTINGS | {"server": address} | settings) as agent:
        assert agent.has_policy
        with agent.episode() as episode:
            steps(episode, 3)
            episode.end(seen(3))
        assert agent.flush(20.0)


@pytest.mark.parametrize("round_trip", FAR)
def test_a_distant_server_is_connected_to(round_trip: float) -> None:
    server = FakeServer()
    with listening(server, "127.0.0.1:0") as (address, _), delayed(address, round_trip) as far:
        learn_over(far)
    assert [segment.steps for segment in server.segments()] == [3]


@needs_openssl
@pytest.mark.parametrize("round_trip", FAR)
def test_a_distant_server_is_connected_to_with_tls(round_trip: float, tmp_path: Path) -> None:
    server, (certificate, key) = FakeServer(), make_certificate(tmp_path, "server")
    credentials = grpc.ssl_server_credentials([(key.read_bytes(), certificate.read_bytes())])
    with listening(server, "127.0.0.1:0", credentials) as (address, _), delayed(address, round_trip) as far:
        learn_over(far, tls={"ca": str(certificate)})
    assert [segment.steps for segment in server.segments()] == [3]


@pytest.mark.slow
@needs_openssl
@pytest.mark.parametrize(("timeout", "is_waited_for"), [(60.0, True), (0.5, False)])
def test_with_a_fallback_a_very_distant_server_is_waited_for_until_the_timeout_and_reached_later(
    timeout: float, is_waited_for: bool, tmp_path: Path
) -> None:
    certificate, key = make_certificate(tmp_path, "server")
    credentials = grpc.ssl_server_credentials([(key.read_bytes(), certificate.read_bytes())])
    with listening(FakeServer(), "127.0.0.1:0", credentials) as (address, _), delayed(address, 2.0) as far:
        settings = SETTINGS | {"server": far, "timeout": timeout, "call_timeout": 60.0, "tls": {"ca": str(certificate)}}
        with connect(settings, fallback=lambda observation: 1) as agent:
            assert agent.has_policy == is_waited_for
            while not agent.has_policy:
                time.sleep(0.05)


def test_with_a_fallback_a_silent_server_is_waited_for_until_the_timeout() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        server = f"127.0.0.1:{silent.getsockname()[1]}"
        began = time.monotonic()
        with connect(SETTINGS | {"server": server, "timeout": 1.0}, fallback=lambda observation: 1) as agent:
            assert not agent.has_policy
        assert time.monotonic() - began >= 1.0


def test_with_a_fallback_a_refused_connection_is_not_waited_for(nowhere: str) -> None:
    began = time.monotonic()
    agent = connect(SETTINGS | {"server": nowhere, "timeout": 300}, fallback=lambda observation: 1)
    with agent.episode() as episode:
        steps(episode, 3)
        episode.end(seen(3))
    agent.close(timeout=300.0)
    # Far below both timeouts: a bound, not a measurement.
    assert time.monotonic() - began < 60.0


def test_with_a_cached_policy_a_refused_connection_is_not_waited_for(nowhere: str, tmp_path: Path) -> None:
    server = FakeServer()
    with listening(server, "127.0.0.1:0") as (address, _):
        learn_over(address, cache=str(tmp_path))
    began = time.monotonic()
    with connect(SETTINGS | {"server": nowhere, "timeout": 300, "cache": str(tmp_path)}) as agent:
        assert agent.has_policy
    assert time.monotonic() - began < 60.0


def test_closing_while_the_server_is_away_gives_up_at_once_and_counts_what_is_lost() -> None:
    with listening(FakeServer(), "127.0.0.1:0") as (address, _):
        agent = connect(SETTINGS | {"server": address, "close_timeout": 300})
    with agent.episode() as episode:
        steps(episode, 3)
        episode.end(seen(3))
    began = time.monotonic()
    agent.close()
    assert time.monotonic() - began < 60.0
    assert agent.health().drops == {"unsent_at_close": 1}


def test_settings_made_in_python_are_checked_like_those_of_a_file() -> None:
    with pytest.raises(SettingsError, match=r"the token would be sent to example\.org:50051 unencrypted"):
        connect(ClientSettings("c", "example.org:50051", token="secret"))
    with pytest.raises(SettingsError, match="expected host:port"):
        connect(ClientSettings("c", "nowhere"))
    with pytest.raises(SettingsError, match="unencrypted"):
        connect(ClientSettings("c", "127.example.org:50051", token="secret"))
