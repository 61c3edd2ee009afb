"""A server of several processes, as commands see it: one status of them all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rl4sys.client.client_settings import ClientSettings
    from rl4sys.client.grpc_transport import GrpcTransport
    from rl4sys.wire.generated import status_pb2

_SUMMED = ("cpu", "memory_bytes", "data_bytes", "connected_clients", "cpu_seconds", "unlisted_clients")
"""Numbers of a server that are the sums of those of its processes."""


class ServerProcesses:
    """Asks every process of a server."""

    def __init__(self, transports: Sequence[GrpcTransport]) -> None:
        self._transports = transports

    def __len__(self) -> int:
        """How many there are."""
        return len(self._transports)

    def status(self, request: status_pb2.StatusRequest, timeout: float) -> status_pb2.StatusReply:
        """The learners, clients and warnings of all processes, and the sums of their numbers."""
        return merged([transport.status(request, timeout=timeout) for transport in self._transports])

    def of_client(self, client: str, timeout: float) -> GrpcTransport:
        """The process that knows a client; the first one if none does."""
        from rl4sys.wire.generated import status_pb2

        for transport in self._transports[1:]:
            reply = transport.status(status_pb2.StatusRequest(), timeout=timeout)
            if any(each.client == client for each in reply.clients):
                return transport
        return self._transports[0]

    def close(self) -> None:
        """Close the connections."""
        for transport in self._transports:
            transport.close()


def merged(replies: Sequence[status_pb2.StatusReply]) -> status_pb2.StatusReply:
    """The status of a server, from those of its processes: the state is the worst one, and the disk is shared."""
    from rl4sys.wire.generated import status_pb2

    whole = status_pb2.StatusReply()
    whole.CopyFrom(replies[0])
    server = whole.server
    for reply in replies[1:]:
        whole.learners.extend(reply.learners)
        whole.clients.extend(reply.clients)
        other = reply.server
        for name in _SUMMED:
            setattr(server, name, getattr(server, name) + getattr(other, name))
        for name, count in other.failed_calls.items():
            server.failed_calls[name] += count
        server.calls.extend(other.calls)
        server.warnings.extend(warning for warning in other.warnings if warning not in server.warnings)
        server.alerts.extend(other.alerts)
        server.problem = " ".join(part for part in (server.problem, other.problem) if part)
        server.uptime_seconds = min(server.uptime_seconds, other.uptime_seconds)
        if server.state == status_pb2.SERVER_STATE_SERVING:
            server.state = other.state
    return whole


def connect_to_all(settings: ClientSettings, server: str) -> ServerProcesses:
    """Connections to each process of a server, or to the only one."""
    from dataclasses import replace

    from rl4sys.client.grpc_transport import GrpcTransport
    from rl4sys.wire.port_range import addresses_of

    addresses = addresses_of(server) or [server]
    return ServerProcesses([GrpcTransport(replace(settings, server=address)) for address in addresses])
