"""The gRPC servicer of operators: converts bytes to messages and failures to status codes, and nothing else."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, AsyncIterator
from concurrent.futures import Executor

import grpc
import grpc.aio

from rl4sys.server.access.caller import Role
from rl4sys.server.call_errors import invalid
from rl4sys.server.service.operations_service import OperationsService
from rl4sys.server.transport.grpc_servicer import Context, TrainingServicer, abort, run_in, stream, unary
from rl4sys.wire.calls import CallFailed, Code
from rl4sys.wire.generated import operations_pb2
from rl4sys.wire.message_sizes import FILE_CHUNK_BYTES, MAX_INSTALLED_BYTES


class OperationsServicer:
    """The handlers of `rl4sys.v1.Operations`, for a server of `grpc.aio`. All run in threads."""

    def __init__(self, service: OperationsService, training: TrainingServicer, threads: Executor) -> None:
        """`training` tells callers apart, as for all other calls."""
        self._service, self._received, self._threads = service, training.received, threads

    def handler(self) -> grpc.GenericRpcHandler:
        """The handler to add to a server."""
        return grpc.method_handlers_generic_handler(
            "rl4sys.v1.Operations",
            {
                "Control": unary(self._control),
                "Manage": unary(self._manage),
                "Profile": unary(self._profile),
                "Audit": unary(self._audit),
                "Export": stream(self._export),
                "Install": grpc.stream_unary_rpc_method_handler(self._install),
            },
        )

    async def _control(self, data: bytes, context: Context) -> operations_pb2.ControlReply:
        caller, request = self._received("Control", operations_pb2.ControlRequest, data, context)
        return await run_in(self._threads, self._service.control, request, caller)

    async def _manage(self, data: bytes, context: Context) -> operations_pb2.ManageReply:
        caller, request = self._received("Manage", operations_pb2.ManageRequest, data, context)
        return await run_in(self._threads, self._service.manage, request, caller)

    async def _profile(self, data: bytes, context: Context) -> operations_pb2.ProfileReply:
        caller, request = self._received("Profile", operations_pb2.ProfileRequest, data, context)
        return await run_in(self._threads, self._service.profile, request, caller)

    async def _audit(self, data: bytes, context: Context) -> operations_pb2.AuditReply:
        caller, request = self._received("Audit", operations_pb2.AuditRequest, data, context)
        return await run_in(self._threads, self._service.audit, request, caller)

    async def _export(self, data: bytes, context: Context) -> AsyncGenerator[operations_pb2.FileChunk, None]:
        caller, request = self._received("Export", operations_pb2.ExportRequest, data, context)
        file = await run_in(self._threads, self._service.export, request, caller)
        digest = hashlib.sha256(file).digest()
        for start in range(0, len(file), FILE_CHUNK_BYTES):
            is_last = start + FILE_CHUNK_BYTES >= len(file)
            part = file[start : start + FILE_CHUNK_BYTES]
            yield operations_pb2.FileChunk(data=part, sha256=digest if is_last else b"")

    async def _install(self, parts: AsyncIterator[bytes], context: Context) -> bytes:
        try:
            return (await self._installed(parts, context)).SerializeToString()
        except Exception as error:  # whatever it is, the caller gets a code that it knows
            await abort(context, error)

    async def _installed(self, parts: AsyncIterator[bytes], context: Context) -> operations_pb2.ManageReply:
        first: operations_pb2.InstallRequest | None = None
        file = bytearray()
        async for data in parts:
            # Each part is checked: a token may be revoked meanwhile.
            caller, request = self._received("Install", operations_pb2.InstallRequest, data, context)
            if first is None:
                first = request
            if not caller.role.includes(Role.OPERATOR):
                # The service refuses it, before anything is collected.
                break
            file += request.data
            if len(file) > MAX_INSTALLED_BYTES:
                message = f"The file is larger than {MAX_INSTALLED_BYTES:,} bytes, which is the most that is accepted."
                raise CallFailed(Code.RESOURCE_EXHAUSTED, message)
        if first is None:
            raise invalid("The call has no request.")
        return await run_in(self._threads, self._service.install, first, bytes(file), caller)
