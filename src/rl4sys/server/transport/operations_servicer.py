"""The gRPC servicer of operators: converts bytes to messages and failures to status codes, and nothing else."""

from __future__ import annotations

from concurrent.futures import Executor

import grpc
import grpc.aio

from rl4sys.server.service.operations_service import OperationsService
from rl4sys.server.transport.grpc_servicer import Context, TrainingServicer, run_in, unary
from rl4sys.wire.generated import operations_pb2


class OperationsServicer:
    """The handlers of `rl4sys.v1.Operations`, for a server of `grpc.aio`. All run in threads."""

    def __init__(self, service: OperationsService, training: TrainingServicer, threads: Executor) -> None:
        """`training` tells callers apart, as for all other calls."""
        self._service, self._received, self._threads = service, training.received, threads

    def handler(self) -> grpc.GenericRpcHandler:
        """The handler to add to a server."""
        return grpc.method_handlers_generic_handler(
            "rl4sys.v1.Operations",
            {"Control": unary(self._control), "Manage": unary(self._manage), "Audit": unary(self._audit)},
        )

    async def _control(self, data: bytes, context: Context) -> operations_pb2.ControlReply:
        caller, request = self._received("Control", operations_pb2.ControlRequest, data, context)
        return await run_in(self._threads, self._service.control, request, caller)

    async def _manage(self, data: bytes, context: Context) -> operations_pb2.ManageReply:
        caller, request = self._received("Manage", operations_pb2.ManageRequest, data, context)
        return await run_in(self._threads, self._service.manage, request, caller)

    async def _audit(self, data: bytes, context: Context) -> operations_pb2.AuditReply:
        caller, request = self._received("Audit", operations_pb2.AuditRequest, data, context)
        return await run_in(self._threads, self._service.audit, request, caller)
