"""Network addresses of servers, for clients and servers alike."""

from __future__ import annotations

_LARGEST_PORT = 65_535


def host_and_port(address: str) -> tuple[str, int] | None:
    """The parts of HOST:PORT; None for anything else, which gRPC would silently take for another port."""
    host, _, port = address.rpartition(":")
    if not (host and port.isascii() and port.isdigit() and int(port) <= _LARGEST_PORT):
        return None
    return host.strip("[]"), int(port)
