"""The calls of operators over gRPC, on the channel of a client's transport."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rl4sys.client.grpc_transport import GrpcTransport
from rl4sys.wire.generated import operations_pb2

_SERVICE = "/rl4sys.v1.Operations/"


class OperationsCalls:
    """Commands for a server. Every method raises `CallFailed`."""

    def __init__(self, transport: GrpcTransport) -> None:
        self._transport = transport

    def control(self, request: operations_pb2.ControlRequest, timeout: float) -> operations_pb2.ControlReply:
        """Order what the clients of a learner have to do."""
        method = self._transport.unary(f"{_SERVICE}Control", operations_pb2.ControlReply)
        reply: operations_pb2.ControlReply = self._transport.call(method, request, timeout)
        return reply

    def manage(self, request: operations_pb2.ManageRequest, timeout: float) -> operations_pb2.ManageReply:
        """Carry out a command on a learner."""
        method = self._transport.unary(f"{_SERVICE}Manage", operations_pb2.ManageReply)
        reply: operations_pb2.ManageReply = self._transport.call(method, request, timeout)
        return reply

    def profile(self, request: operations_pb2.ProfileRequest, timeout: float) -> operations_pb2.ProfileReply:
        """Let a client measure what it costs, and read what it has measured."""
        method = self._transport.unary(f"{_SERVICE}Profile", operations_pb2.ProfileReply)
        reply: operations_pb2.ProfileReply = self._transport.call(method, request, timeout)
        return reply

    def audit(self, request: operations_pb2.AuditRequest, timeout: float) -> operations_pb2.AuditReply:
        """The newest entries of the audit log."""
        method = self._transport.unary(f"{_SERVICE}Audit", operations_pb2.AuditReply)
        reply: operations_pb2.AuditReply = self._transport.call(method, request, timeout)
        return reply

    def export(self, request: operations_pb2.ExportRequest, timeout: float) -> Iterator[operations_pb2.FileChunk]:
        """The newest policy of a learner, in chunks."""
        return self._transport.stream(f"{_SERVICE}Export", operations_pb2.FileChunk, request, timeout)

    def install(self, parts: Iterable[operations_pb2.InstallRequest], timeout: float) -> operations_pb2.ManageReply:
        """Send a file that a learner shall continue from."""
        method = self._transport.uploading(f"{_SERVICE}Install", operations_pb2.ManageReply)
        reply: operations_pb2.ManageReply = self._transport.call(method, iter(parts), timeout)
        return reply
