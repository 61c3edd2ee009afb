"""Addresses of Ray clusters, checked before Ray is imported: it would wait for minutes where no cluster answers."""

from __future__ import annotations

import http.client
import os
import socket
from urllib.parse import urlsplit

import grpc

_PROBE_SECONDS = 2.0
"""Seconds to wait for an answer from an address."""
_HEALTH = "/grpc.health.v1.Health/Check"
"""What every server of Ray answers, as gRPC's own protocol of health checks has it; without a token, too."""
_HEAD = "the port of its head (6379), not that of its dashboard"
_DASHBOARD = "the address of its dashboard (port 8265)"


class ClusterUnfit(RuntimeError):
    """A Ray cluster that cannot be reached, or cannot run what was asked for."""


def require_cluster(address: str | None) -> None:
    """Raise `ClusterUnfit` unless the head of a cluster listens at the address; `auto` is found by Ray."""
    if address is None or address == "auto":
        return
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        raise ClusterUnfit(f"--address {address}: expected auto, HOST:6379 or http://HOST:8265")
    try:
        with socket.create_connection((host, int(port)), timeout=_PROBE_SECONDS):
            pass
    except OSError as error:
        raise _silent(address, error, _HEAD) from error
    # With TLS, Ray has the certificates.
    if os.environ.get("RAY_USE_TLS") != "1":
        _require_health(address)


def _require_health(address: str) -> None:
    """Refuse what is no server of gRPC, or one without health checks, which Ray would ask again for half a minute."""
    with grpc.insecure_channel(address, options=(("grpc.enable_http_proxy", 0),)) as channel:
        check: grpc.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(_HEALTH)
        try:
            check(b"", timeout=_PROBE_SECONDS)
        except grpc.RpcError as error:
            if error.code() not in (grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED):
                raise _silent(address, "the answer is not that of a Ray cluster", _HEAD) from error


def require_dashboard(address: str) -> None:
    """Raise `ClusterUnfit` unless a server of HTTP listens at the URL of a cluster's dashboard."""
    parts = urlsplit(address)
    secure = parts.scheme == "https"
    kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
    connection = kind(parts.hostname or "", parts.port, timeout=_PROBE_SECONDS)
    try:
        connection.request("GET", "/api/version")
        connection.getresponse()
    except (OSError, http.client.HTTPException) as error:
        raise _silent(address, error, _DASHBOARD) from error
    finally:
        connection.close()


def _silent(address: str, reason: object, expected: str) -> ClusterUnfit:
    said = (isinstance(reason, OSError) and reason.strerror) or reason
    return ClusterUnfit(
        f"No Ray cluster answers at {address} ({said}). Check that it is running, and that this is {expected}."
    )
