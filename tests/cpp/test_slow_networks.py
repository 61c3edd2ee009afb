"""C++ clients of servers that are far away or refuse connections."""

from __future__ import annotations

import json
import socket
import time
from pathlib import Path

import grpc
import pytest
from tests.client.delay_proxy import delayed
from tests.client.fake_server import FakeServer, small_policy
from tests.client.grpc_server import listening
from tests.cpp.programs import attempt, needs_cpp, tool
from tests.pem_files import make_certificate, needs_openssl

pytestmark = [needs_cpp, pytest.mark.slow]

ROUND_TRIPS = [0.0, 0.03, 0.1, 0.3, 0.6]
NOWHERE = "127.0.0.1:1"
PATIENT = 300.0
"""Seconds: beyond what a test may take."""


def configured(directory: Path, server: str, **settings: object) -> Path:
    """The file of a client of the fake server's policy."""
    file = directory / "agent.json"
    file.write_text(json.dumps({"client_id": "far", "server": server} | settings))
    return file


def fallbacks(config: Path) -> int:
    """How many of ten decisions the fallback takes; nothing may be printed as an error."""
    done = attempt("run-asked", config, given="10\n")
    assert (done.returncode, done.stderr) == (0, "")
    return int(json.loads(done.stdout)["fallbacks"])


@pytest.mark.parametrize("round_trip", ROUND_TRIPS)
def test_a_distant_server_is_connected_to(round_trip: float, tmp_path: Path) -> None:
    with (
        listening(FakeServer(small_policy(sees=2)), "127.0.0.1:0") as (address, _),
        delayed(address, round_trip) as far,
    ):
        assert fallbacks(configured(tmp_path, far)) == 0


@needs_openssl
@pytest.mark.parametrize("round_trip", ROUND_TRIPS)
def test_a_distant_server_is_connected_to_with_tls(round_trip: float, tmp_path: Path) -> None:
    certificate, key = make_certificate(tmp_path, "server")
    credentials = grpc.ssl_server_credentials([(key.read_bytes(), certificate.read_bytes())])
    with (
        listening(FakeServer(small_policy(sees=2)), "127.0.0.1:0", credentials) as (address, _),
        delayed(address, round_trip) as far,
    ):
        assert fallbacks(configured(tmp_path, far, tls={"ca": str(certificate)})) == 0


@needs_openssl
@pytest.mark.parametrize(("timeout", "taken_by_fallback"), [(60.0, 0), (0.5, 10)])
def test_with_a_fallback_a_very_distant_server_is_waited_for_until_the_timeout(
    timeout: float, taken_by_fallback: int, tmp_path: Path
) -> None:
    certificate, key = make_certificate(tmp_path, "server")
    credentials = grpc.ssl_server_credentials([(key.read_bytes(), certificate.read_bytes())])
    tls = {"ca": str(certificate)}
    with (
        listening(FakeServer(small_policy(sees=2)), "127.0.0.1:0", credentials) as (address, _),
        delayed(address, 2.0) as far,
    ):
        config = configured(tmp_path, far, tls=tls, timeout=timeout, call_timeout=60.0)
        assert fallbacks(config) == taken_by_fallback


def test_with_a_fallback_a_refused_connection_is_not_waited_for(tmp_path: Path) -> None:
    began = time.monotonic()
    assert fallbacks(configured(tmp_path, NOWHERE, timeout=300)) == 10
    # Far below the timeout: a bound, not a measurement.
    assert time.monotonic() - began < 60.0


def test_a_refused_connection_is_one_line(tmp_path: Path) -> None:
    done = attempt("run", configured(tmp_path, NOWHERE, timeout=0.3), "1")
    assert done.returncode == 1
    assert done.stderr.startswith(f"No answer from the server {NOWHERE} within 0.3 s (")
    assert done.stderr.count("\n") == 1


def test_a_cached_policy_decides_at_once_and_closing_does_not_wait_for_an_absent_server(tmp_path: Path) -> None:
    with listening(FakeServer(small_policy(sees=2)), "127.0.0.1:0") as (address, _):
        config = configured(tmp_path, address, cache="cache")
        assert json.loads(tool("run-once", config, "20"))["connected"]
    configured(tmp_path, NOWHERE, cache="cache", timeout=PATIENT)
    assert json.loads(tool("run-once", config, str(PATIENT))) == {"backlog": 1, "connected": False}


def test_a_call_that_is_not_answered_ends_after_its_own_timeout(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        server = f"127.0.0.1:{silent.getsockname()[1]}"
        done = attempt("try-connect", configured(tmp_path, server, timeout=2.0, call_timeout=0.2))
    assert done.stderr.startswith(f"No answer from the server {server} within 2 s (Deadline Exceeded")
