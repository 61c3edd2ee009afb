"""The gRPC servicer: converts bytes to messages, tokens to callers and failures to status codes, and nothing else.

Push, Watch and Report, which hundreds of clients use all the time, run as coroutines on one event loop; calls that may
take a while run in threads, decisions in one thread for each learner.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable
from concurrent.futures import Executor
from contextlib import suppress
from typing import NoReturn, TypeAlias, TypeVar

import grpc
import grpc.aio
from google.protobuf.message import Message

from rl4sys.server.access.caller import Caller, Role
from rl4sys.server.access.tokens import TokenFile
from rl4sys.server.call_errors import invalid
from rl4sys.server.service.training_service import TrainingService
from rl4sys.server.transport.addresses import is_local_peer
from rl4sys.wire import ContractViolation, Failure, parse
from rl4sys.wire.calls import CallFailed, Code
from rl4sys.wire.generated import status_pb2, training_pb2, weights_pb2
from rl4sys.wire.message_sizes import REQUEST_BYTES, REQUEST_FIELDS

_log = logging.getLogger(__name__)

_LONGEST_DETAILS = 3_000
"""Status messages travel in headers, which gRPC keeps below 8 KiB."""
_LOOK_SECONDS = 5.0
"""How often the token of an open stream is checked again."""

M = TypeVar("M", bound=Message)
T = TypeVar("T")
Context: TypeAlias = "grpc.aio.ServicerContext[bytes, bytes]"


class TrainingServicer:
    """The handlers of `rl4sys.v1.Training`, for a server of `grpc.aio`."""

    def __init__(
        self, service: TrainingService, tokens: TokenFile | None, threads: Executor, packers: Executor
    ) -> None:
        """`threads` run calls that may take a while, `packers` make patches, which other calls must not wait for."""
        self._service, self._tokens, self._threads, self._packers = service, tokens, threads, packers
        limits = service.options.limits
        self._most_bytes = limits.max_message_bytes
        self._most_segments = limits.max_push_segments

    def handler(self) -> grpc.GenericRpcHandler:
        """The handler to add to a server."""
        return grpc.method_handlers_generic_handler(
            "rl4sys.v1.Training",
            {
                "Join": unary(self._join),
                "Push": unary(self._push),
                "Act": unary(self._act),
                "Report": unary(self._report),
                "Status": unary(self._status),
                "Pull": stream(self._pull),
                "Watch": stream(self._watch),
            },
        )

    async def _join(self, data: bytes, context: Context) -> training_pb2.JoinReply:
        caller, request = self.received("Join", training_pb2.JoinRequest, data, context)
        is_cancelled = threading.Event()
        try:
            return await run_in(self._threads, self._service.join, request, caller, is_cancelled.is_set)
        except asyncio.CancelledError:
            # The thread continues, and must not leave a learner that no client knows.
            is_cancelled.set()
            raise

    async def _push(self, data: bytes, context: Context) -> training_pb2.PushReply:
        # A few more than are accepted, so that the service can report how many there were.
        bounds = (self._most_bytes, 2 * self._most_segments + 16)
        caller, request = self.received("Push", training_pb2.PushRequest, data, context, *bounds)
        return await self._service.push_async(request, caller)

    async def _act(self, data: bytes, context: Context) -> training_pb2.ActReply:
        caller, request = self.received("Act", training_pb2.ActRequest, data, context, self._most_bytes)
        return await self._service.act_async(request, caller)

    async def _report(self, data: bytes, context: Context) -> training_pb2.ReportReply:
        caller, request = self.received("Report", training_pb2.ReportRequest, data, context)
        return self._service.report(request, caller)

    async def _status(self, data: bytes, context: Context) -> status_pb2.StatusReply:
        caller, request = self.received("Status", status_pb2.StatusRequest, data, context)
        return await run_in(self._threads, self._service.status, request, caller)

    async def _pull(self, data: bytes, context: Context) -> AsyncGenerator[weights_pb2.PatchChunk, None]:
        caller, request = self.received("Pull", training_pb2.PullRequest, data, context)
        chunks = self._service.pull(request, caller)
        while (chunk := await run_in(self._packers, next, chunks, None)) is not None:
            yield chunk

    async def _watch(self, data: bytes, context: Context) -> AsyncGenerator[training_pb2.NewVersion, None]:
        caller, request = self.received("Watch", training_pb2.WatchRequest, data, context)
        watching = self._service.watch(request, caller)
        loop, changed = asyncio.get_running_loop(), asyncio.Event()

        def wake() -> None:
            loop.call_soon_threadsafe(changed.set)

        stop_listening = watching.listen(wake)
        try:
            while True:
                changed.clear()
                if self._tokens is not None:
                    self._service.require_watching(request, self.caller("Watch", context))
                if (order := watching.next_order()) is not None:
                    yield order
                elif watching.has_news():
                    yield await run_in(self._packers, watching.news)
                elif self._tokens is None:
                    await changed.wait()
                else:
                    await _either(changed, _LOOK_SECONDS)
        finally:
            stop_listening()
            watching.cancel()

    def received(
        self,
        method: str,
        kind: type[M],
        data: bytes,
        context: Context,
        most_bytes: int = REQUEST_BYTES,
        most_fields: int = REQUEST_FIELDS,
    ) -> tuple[Caller, M]:
        """The caller and its request. The caller is checked first: one without permission learns nothing else."""
        caller = self.caller(method, context)
        try:
            return caller, parse(kind, data, most_bytes=most_bytes, most_fields=most_fields)
        except ContractViolation as error:
            self._service.count(method, Code.INVALID_ARGUMENT.value)
            raise invalid(str(error)) from error

    def caller(self, method: str, context: Context) -> Caller:
        """Who calls, or UNAUTHENTICATED."""
        if self._tokens is None:
            peer = context.peer()
            return Caller(peer=peer, role=Role.OPERATOR if is_local_peer(peer) else Role.CLIENT)
        try:
            return self._tokens.authenticate(context.invocation_metadata() or (), context.peer())
        except CallFailed as error:
            self._service.count(method, error.code.value)
            raise


async def run_in(executor: Executor, work: Callable[..., T], *arguments: object) -> T:
    """Run something that may take a while in a thread."""
    return await asyncio.get_running_loop().run_in_executor(executor, work, *arguments)


async def _either(event: asyncio.Event, seconds: float) -> None:
    """Wait for an event, or until the time is up."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()


def unary(answer: Callable[[bytes, Context], Awaitable[Message]]) -> grpc.RpcMethodHandler[bytes, bytes]:
    """The handler of a call with one request and one reply."""

    async def handle(data: bytes, context: Context) -> bytes:
        try:
            return (await answer(data, context)).SerializeToString()
        except Exception as error:  # whatever it is, the client gets a code that it knows
            await abort(context, error)

    return grpc.unary_unary_rpc_method_handler(handle)


def stream(answer: Callable[[bytes, Context], AsyncGenerator[Message, None]]) -> grpc.RpcMethodHandler[bytes, bytes]:
    """The handler of a call whose reply is a stream."""

    async def handle(data: bytes, context: Context) -> AsyncGenerator[bytes, None]:
        messages = answer(data, context)
        try:
            async for message in messages:
                yield message.SerializeToString()
        except Exception as error:  # as above
            await abort(context, error)
        finally:
            await messages.aclose()

    return grpc.unary_stream_rpc_method_handler(handle)


async def abort(context: Context, error: Exception) -> NoReturn:
    """End a call with the code of an error, or INTERNAL for an unexpected one."""
    if not isinstance(error, CallFailed):
        _log.error("A call failed unexpectedly.", exc_info=error)
        error = CallFailed(Code.INTERNAL, "Internal error of the server; see its log, and report it.", Failure())
    await context.abort(
        grpc.StatusCode[error.code.value], str(error)[:_LONGEST_DETAILS], (error.failure.to_metadata(),)
    )
    raise AssertionError("abort always raises")
