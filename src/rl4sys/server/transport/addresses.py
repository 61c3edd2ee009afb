"""Where a server can listen: which addresses are none, which stay on this machine, and why one cannot be had."""

from __future__ import annotations

import errno
import ipaddress
import os
import socket

from rl4sys.server.options import ImpossibleSetup
from rl4sys.wire.addresses import host_and_port

_UNIX = "unix:"


def require_address(listen: str) -> None:
    """Refuse what is neither HOST:PORT nor unix:PATH."""
    if not (listen.startswith(_UNIX) and len(listen) > len(_UNIX)) and host_and_port(listen) is None:
        raise ImpossibleSetup(
            f"listen: got '{listen}'; expected HOST:PORT with a port up to 65535 (0: any free one), such as "
            f"127.0.0.1:50051, or unix:PATH."
        )


def host_of(listen: str) -> str:
    """The host of HOST:PORT."""
    return listen.rpartition(":")[0].strip("[]")


def is_local(listen: str) -> bool:
    """Whether only this machine can reach it."""
    if listen.startswith(_UNIX):
        return True
    host = host_of(listen)
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def require_unowned(listen: str) -> None:
    """Refuse a socket at which somebody answers: gRPC would put its own there, and that one gets no more calls."""
    if not listen.startswith(_UNIX):
        return
    path = listen.removeprefix(_UNIX)
    with socket.socket(socket.AF_UNIX) as attempt:
        try:
            attempt.connect(path)
        except OSError:
            # Nobody is there; what a killed server left behind is replaced.
            return
    raise ImpossibleSetup(f"Cannot listen on {listen}: another server does. End that one, or choose another --listen.")


def why_not(listen: str) -> str:
    """What the system says to an attempt to listen there, with advice: gRPC keeps it to itself."""
    try:
        if listen.startswith(_UNIX):
            # Nothing is bound here: that would leave a socket behind.
            os.stat(os.path.dirname(listen.removeprefix(_UNIX)) or ".")
            return "its directory is there, but no socket can be made in it. Choose another --listen."
        _bind(host_of(listen), int(listen.rpartition(":")[2]))
    except OSError as error:
        advice = "End who has it, or choose" if error.errno == errno.EADDRINUSE else "Choose"
        return f"{error.strerror or error}. {advice} another --listen."
    return "it was taken a moment ago. Try again."


def _bind(host: str, port: int) -> None:
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    with socket.socket(family, kind, protocol) as attempt:
        attempt.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        attempt.bind(address)
        attempt.listen()
