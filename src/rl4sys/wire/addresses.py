"""Addresses of servers, as clients and servers are told them."""

from __future__ import annotations

_LARGEST_PORT = 65_535


def host_and_port(address: str) -> tuple[str, int] | None:
    """The parts of HOST:PORT; None for anything else, which gRPC would take for some other port and say nothing."""
    host, _, port = address.rpartition(":")
    if not (host and port.isascii() and port.isdigit() and int(port) <= _LARGEST_PORT):
        return None
    return host.strip("[]"), int(port)
