"""Why a client cannot connect, in the same words in C++ and in Python."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import grpc
import pytest
from tests.client.fake_server import FakeServer, small_policy
from tests.client.grpc_server import listening
from tests.cpp.programs import attempt, needs_cpp
from tests.pem_files import make_certificate, needs_openssl

from rl4sys.client.connection import ConnectError, connect
from rl4sys.wire.calls import CallFailed, Code

pytestmark = [needs_cpp, pytest.mark.slow]


class Strict(FakeServer):
    """Refuses every client, as a server does that has other tokens."""

    def join(self, request: Any, timeout: float) -> Any:
        raise CallFailed(Code.UNAUTHENTICATED, "The token of this client is not known here.")


def errors(directory: Path, server: str, **settings: Any) -> tuple[str, str]:
    """What a C++ program writes as its only error output, and what Python raises."""
    config = directory / "agent.json"
    config.write_text(json.dumps({"client_id": "one", "server": server} | settings))
    with pytest.raises(ConnectError) as raised:
        connect(config)
    done = attempt("try-connect", config)
    assert done.returncode == 1
    return done.stderr, str(raised.value) + "\n"


def test_a_refused_connection(tmp_path: Path) -> None:
    in_cpp, in_python = errors(tmp_path, "127.0.0.1:1", timeout=0.5)
    assert in_cpp == in_python
    assert in_cpp.startswith("No answer from the server 127.0.0.1:1 within 0.5 s (connection refused). Start it with")


def test_a_wrong_token(tmp_path: Path) -> None:
    with listening(Strict(small_policy(sees=2)), "127.0.0.1:0") as (address, _):
        in_cpp, in_python = errors(tmp_path, address, token="wrong", timeout=300)
    assert in_cpp == in_python
    assert in_cpp == f"The server {address} refuses client 'one': The token of this client is not known here.\n"


@needs_openssl
def test_a_wrong_certificate_authority_is_known_at_once(tmp_path: Path) -> None:
    certificate, key = make_certificate(tmp_path, "server")
    other, _ = make_certificate(tmp_path, "other")
    credentials = grpc.ssl_server_credentials([(key.read_bytes(), certificate.read_bytes())])
    with listening(FakeServer(small_policy(sees=2)), "127.0.0.1:0", credentials) as (address, _):
        in_cpp, in_python = errors(tmp_path, address, tls={"ca": str(other)}, timeout=300)
    assert in_cpp == in_python
    assert "The certificate of the server is not trusted: it is not signed by the CA in `tls: {ca: FILE}`" in in_cpp
