from __future__ import annotations

import socket
from pathlib import Path

import pytest

from rl4sys.server import ImpossibleSetup
from rl4sys.server.transport.addresses import (
    is_local,
    is_local_peer,
    listen_problem,
    require_address,
    require_available,
)
from rl4sys.server.transport.grpc_server import GrpcServer, ServerOptions


@pytest.mark.parametrize(
    "listen", ["127.0.0.1:50051", "[::1]:0", "localhost:65535", "0.0.0.0:1", "unix:/run/x", "unix:x"]
)
def test_an_address_has_a_host_and_a_port_or_is_a_path(listen: str) -> None:
    require_address(listen)


@pytest.mark.parametrize(
    "listen", ["127.0.0.1", "127.0.0.1:99999", ":50051", "host:", "host:http", "[::1]", "unix:", ""]
)
def test_an_invalid_address_is_refused_with_what_was_expected(listen: str) -> None:
    with pytest.raises(ImpossibleSetup, match="expected HOST:PORT"):
        ServerOptions(listen=listen)


def test_local_addresses_are_distinguished_from_public_ones() -> None:
    assert all(map(is_local, ["127.0.0.1:1", "[::1]:1", "localhost:1", "unix:/run/x"]))
    assert not any(map(is_local, ["0.0.0.0:1", "10.0.0.1:1", "example.org:1"]))


def test_the_reason_why_an_address_cannot_be_used_is_given(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert "in use" in listen_problem(f"127.0.0.1:{taken.getsockname()[1]}")
    assert "No such file" in listen_problem(f"unix:{tmp_path}/nowhere/socket")


def test_the_unix_socket_of_a_running_server_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        with pytest.raises(ImpossibleSetup, match="another server does"):
            require_available(f"unix:{path}")
    # A socket left behind by a killed server does not matter.
    require_available(f"unix:{path}")


def test_files_that_are_not_certificates_are_named(tmp_path: Path) -> None:
    junk = tmp_path / "junk.pem"
    junk.write_text("no certificate")
    options = ServerOptions(listen="127.0.0.1:0", data=tmp_path / "data", tls_cert=junk, tls_key=junk)
    with pytest.raises(ImpossibleSetup, match=r"junk\.pem are not a certificate"):
        GrpcServer(options)


@pytest.mark.parametrize(
    ("peer", "is_local"),
    [
        ("ipv4:127.0.0.1:40112", True),
        ("ipv6:%5B::1%5D:40112", True),
        ("ipv6:[::1]:40112", True),
        ("ipv6:%5B::ffff:127.0.0.1%5D:40112", True),
        ("unix:", True),
        ("unix:/run/rl4sys.sock", True),
        ("ipv4:10.1.2.3:40112", False),
        ("ipv6:%5B2001:db8::1%5D:40112", False),
        ("ipv6:%5B::ffff:10.1.2.3%5D:40112", False),
        ("localhost", False),
        ("", False),
    ],
)
def test_peers_on_this_machine_are_distinguished_from_others(peer: str, is_local: bool) -> None:
    assert is_local_peer(peer) is is_local
