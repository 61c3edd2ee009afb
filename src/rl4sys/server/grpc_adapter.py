"""The service behind gRPC: bytes into messages, tokens into callers, failures into status codes. Nothing else.

What hundreds of clients do all the time, pushing and watching, runs as coroutines on one event loop; what may take a
while runs in threads beside it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from concurrent.futures import Executor
from typing import NoReturn, TypeAlias, TypeVar

import grpc
import grpc.aio
from google.protobuf.message import Message

from rl4sys.server.callers import Caller
from rl4sys.server.failing import invalid
from rl4sys.server.service import TrainingService
from rl4sys.server.tokens import TokenFile
from rl4sys.wire import ContractViolation, Failure, parse
from rl4sys.wire.calls import CallFailed, Code
from rl4sys.wire.generated import status_pb2, training_pb2, weights_pb2

_log = logging.getLogger(__name__)

_LONGEST_DETAILS = 3_000
"""Status messages travel in headers, which gRPC keeps below 8 KiB."""

M = TypeVar("M", bound=Message)
T = TypeVar("T")
Context: TypeAlias = "grpc.aio.ServicerContext[bytes, bytes]"


class GrpcAdapter:
    """The handlers of `rl4sys.v1.Training`, for a server of `grpc.aio`."""

    def __init__(self, service: TrainingService, tokens: TokenFile | None, threads: Executor) -> None:
        self._service, self._tokens, self._threads = service, tokens, threads
        limits = service.options.limits
        self._most_bytes = limits.max_message_bytes
        self._most_segments = limits.max_push_segments

    def handler(self) -> grpc.GenericRpcHandler:
        """What to add to a server."""
        return grpc.method_handlers_generic_handler(
            "rl4sys.v1.Training",
            {
                "Join": _unary(self._join),
                "Push": _unary(self._push),
                "Act": _unary(self._act),
                "Status": _unary(self._status),
                "Pull": _stream(self._pull),
                "Watch": _stream(self._watch),
            },
        )

    async def _join(self, data: bytes, context: Context) -> training_pb2.JoinReply:
        caller = self._caller(context)
        return await self._apart(self._service.join, _parsed(training_pb2.JoinRequest, data), caller)

    async def _push(self, data: bytes, context: Context) -> training_pb2.PushReply:
        caller = self._caller(context)
        # A few more than are taken, so that the service can say how many they were.
        request = _parsed(training_pb2.PushRequest, data, self._most_bytes, 2 * self._most_segments + 16)
        return await self._service.push_soon(request, caller)

    async def _act(self, data: bytes, context: Context) -> training_pb2.ActReply:
        caller = self._caller(context)
        return await self._apart(self._service.act, _parsed(training_pb2.ActRequest, data, self._most_bytes), caller)

    async def _status(self, data: bytes, context: Context) -> status_pb2.StatusReply:
        caller = self._caller(context)
        return await self._apart(self._service.status, _parsed(status_pb2.StatusRequest, data), caller)

    async def _pull(self, data: bytes, context: Context) -> AsyncGenerator[weights_pb2.PatchChunk, None]:
        caller = self._caller(context)
        chunks = self._service.pull(_parsed(training_pb2.PullRequest, data), caller)
        while (chunk := await self._apart(next, chunks, None)) is not None:
            yield chunk

    async def _watch(self, data: bytes, context: Context) -> AsyncGenerator[training_pb2.NewVersion, None]:
        caller = self._caller(context)
        watching = self._service.watch(_parsed(training_pb2.WatchRequest, data), caller)
        loop, changed = asyncio.get_running_loop(), asyncio.Event()

        def tell() -> None:
            loop.call_soon_threadsafe(changed.set)

        end_telling = watching.tell(tell)
        try:
            while True:
                changed.clear()
                if watching.has_news():
                    yield await self._apart(watching.news)
                else:
                    await changed.wait()
        finally:
            end_telling()
            watching.cancel()

    async def _apart(self, work: Callable[..., T], *arguments: object) -> T:
        """Do what may take a while in a thread, so that others can push meanwhile."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work, *arguments)

    def _caller(self, context: Context) -> Caller:
        """First of all: who may not call learns nothing else."""
        if self._tokens is None:
            return Caller(peer=context.peer())
        try:
            return self._tokens.authenticate(context.invocation_metadata() or (), context.peer())
        except CallFailed as error:
            self._service.failed_calls[error.code.value] += 1
            raise


def _parsed(kind: type[M], data: bytes, most_bytes: int = 1 << 18, most_fields: int = 4096) -> M:
    try:
        return parse(kind, data, most_bytes=most_bytes, most_fields=most_fields)
    except ContractViolation as error:
        raise invalid(str(error)) from error


def _unary(answer: Callable[[bytes, Context], Awaitable[Message]]) -> grpc.RpcMethodHandler[bytes, bytes]:
    async def handle(data: bytes, context: Context) -> bytes:
        try:
            return (await answer(data, context)).SerializeToString()
        except Exception as error:  # whatever it is, the client gets a code that it knows
            await _abort(context, error)

    return grpc.unary_unary_rpc_method_handler(handle)


def _stream(answer: Callable[[bytes, Context], AsyncGenerator[Message, None]]) -> grpc.RpcMethodHandler[bytes, bytes]:
    async def handle(data: bytes, context: Context) -> AsyncGenerator[bytes, None]:
        messages = answer(data, context)
        try:
            async for message in messages:
                yield message.SerializeToString()
        except Exception as error:  # as above
            await _abort(context, error)
        finally:
            await messages.aclose()

    return grpc.unary_stream_rpc_method_handler(handle)


async def _abort(context: Context, error: Exception) -> NoReturn:
    if not isinstance(error, CallFailed):
        _log.error("A call failed in an unexpected way.", exc_info=error)
        error = CallFailed(Code.INTERNAL, "The server has a fault; its log says more. Report it.", Failure())
    await context.abort(
        grpc.StatusCode[error.code.value], str(error)[:_LONGEST_DETAILS], (error.failure.to_metadata(),)
    )
    raise AssertionError("abort always raises")
