"""Addresses of Ray clusters, checked before Ray is imported: it would wait for minutes where no process answers."""

from __future__ import annotations

import socket

_PROBE_SECONDS = 3.0
"""Seconds to wait for an answer from an address."""


class ClusterUnfit(RuntimeError):
    """A Ray cluster that cannot be reached, or cannot run what was asked for."""


def require_cluster(address: str | None) -> None:
    """Raise `ClusterUnfit` unless a process listens at the address of a cluster's head; `auto` is found by Ray."""
    if address is None or address == "auto":
        return
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        raise ClusterUnfit(f"--address {address}: expected auto, HOST:6379 or http://HOST:8265")
    require_answer(host, int(port), address, "the port of its head (6379), not that of its dashboard")


def require_answer(host: str, port: int, address: str, expected: str) -> None:
    """Raise unless a process listens there."""
    try:
        socket.create_connection((host, port), timeout=_PROBE_SECONDS).close()
    except OSError as error:
        raise ClusterUnfit(
            f"No process answers at {address} ({error.strerror or error}). Check that the Ray cluster is running, and "
            f"that this is {expected}."
        ) from error
