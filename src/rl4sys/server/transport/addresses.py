"""Addresses that a server listens on: which are valid, which are local, and why one is not available."""

from __future__ import annotations

import errno
import ipaddress
import os
import socket
from urllib.parse import unquote

from rl4sys.server.options import ImpossibleSetup
from rl4sys.wire.addresses import host_and_port

_UNIX = "unix:"


def require_address(listen: str, key: str = "listen") -> None:
    """Refuse an address that is neither HOST:PORT nor unix:PATH."""
    if not (listen.startswith(_UNIX) and len(listen) > len(_UNIX)) and host_and_port(listen) is None:
        raise ImpossibleSetup(
            f"{key}: got '{listen}'; expected HOST:PORT with a port up to 65535 (0: any free one), such as "
            f"127.0.0.1:50051, or unix:PATH."
        )


def host_of(listen: str) -> str:
    """The host of HOST:PORT."""
    return listen.rpartition(":")[0].strip("[]")


def is_local(listen: str) -> bool:
    """Whether only this machine can connect to it."""
    if listen.startswith(_UNIX):
        return True
    host = host_of(listen)
    return _is_loopback(host) or host == "localhost"


def is_local_peer(peer: str) -> bool:
    """Whether a peer is on this machine; gRPC names it `ipv4:127.0.0.1:40112`, `ipv6:%5B::1%5D:40112` or `unix:`."""
    kind, _, address = unquote(peer).partition(":")
    return kind == "unix" or _is_loopback(host_of(address))


def _is_loopback(host: str) -> bool:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback


def require_available(listen: str) -> None:
    """Refuse an address that another process uses, before anything is started.

    gRPC would replace its Unix socket, and that process would get no more calls.
    """
    if not listen.startswith(_UNIX):
        try:
            _bind(listen)
        except OSError as error:
            raise ImpossibleSetup(f"Cannot listen on {listen}: {_advice(error)}") from error
        return
    path = listen.removeprefix(_UNIX)
    with socket.socket(socket.AF_UNIX) as attempt:
        try:
            attempt.connect(path)
        except OSError:
            # No server answers; the socket that a killed one left behind is replaced.
            return
    raise ImpossibleSetup(f"Cannot listen on {listen}: another server does. End that one, or choose another --listen.")


def listen_problem(listen: str) -> str:
    """Why the system does not allow listening there, with advice: gRPC does not say."""
    try:
        if listen.startswith(_UNIX):
            # Binding would leave a socket behind.
            os.stat(os.path.dirname(listen.removeprefix(_UNIX)) or ".")
            return "its directory exists, but no socket can be created in it. Choose another --listen."
        _bind(listen)
    except OSError as error:
        return _advice(error)
    return "it is free again. Try once more."


def _advice(error: OSError) -> str:
    advice = "End the process that uses it, or choose" if error.errno == errno.EADDRINUSE else "Choose"
    return f"{error.strerror or error}. {advice} another --listen."


def _bind(listen: str) -> None:
    host, port = host_of(listen), int(listen.rpartition(":")[2])
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    with socket.socket(family, kind, protocol) as attempt:
        attempt.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        attempt.bind(address)
        attempt.listen()
