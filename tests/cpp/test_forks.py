"""C++ programs that fork while they are connected."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import grpc
import pytest
from tests.client.fake_server import FakeServer, small_policy
from tests.client.grpc_server import listening
from tests.cpp.programs import needs_cpp, tool
from tests.pem_files import make_certificate, needs_openssl

pytestmark = [needs_cpp, pytest.mark.slow]

CHILDREN, ROUNDS = 4, 30


def forked(directory: Path, address: str, **settings: Any) -> dict[str, Any]:
    """What a parent finds that forks children round after round, all of which connect as well."""
    config = directory / "agent.json"
    config.write_text(json.dumps({"client_id": "parent", "server": address, "send_interval": 0.0} | settings))
    found: dict[str, Any] = json.loads(tool("run-forked", config, str(CHILDREN), str(ROUNDS)))
    return found


def test_children_of_a_connected_process_connect_and_it_stays_connected(tmp_path: Path) -> None:
    server = FakeServer(small_policy(sees=2))
    with listening(server, "127.0.0.1:0") as (address, _):
        found = forked(tmp_path, address)
    assert found == {"failed": 0, "flushed": True, "connected": True, "lost": 0}
    assert len({join.client for join in server.joins}) == CHILDREN * ROUNDS + 1
    assert sum(segment.steps for segment in server.segments()) == CHILDREN * ROUNDS + ROUNDS


@needs_openssl
def test_children_of_a_connected_process_connect_with_tls(tmp_path: Path) -> None:
    certificate, key = make_certificate(tmp_path, "server")
    credentials = grpc.ssl_server_credentials([(key.read_bytes(), certificate.read_bytes())])
    with listening(FakeServer(small_policy(sees=2)), "127.0.0.1:0", credentials) as (address, _):
        found = forked(tmp_path, address, tls={"ca": str(certificate)})
    assert found == {"failed": 0, "flushed": True, "connected": True, "lost": 0}


def test_where_grpc_shares_a_descriptor_children_act_with_their_fallback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRPC_POLL_STRATEGY", "epoll1")
    config = tmp_path / "agent.json"
    with listening(FakeServer(small_policy(sees=2)), "127.0.0.1:0") as (address, _):
        config.write_text(json.dumps({"client_id": "parent", "server": address}))
        found = json.loads(tool("run-forked-without-grpc", config))
    assert "was forked while its parent used gRPC, which cannot be used here" in found["refused"]
    assert found["refused"] == found["last_error"]
    assert (found["fallbacks"], found["connected"], found["flushed"]) == (1, False, True)
