"""`grpc.health.v1`, by hand: its two messages have the wire form of wrapped values, so no package is needed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import grpc
import grpc.aio
from google.protobuf.message import DecodeError
from google.protobuf.wrappers_pb2 import StringValue, UInt32Value

MOST_WATCHERS = 64
"""Whoever they are: nobody is asked for a token here."""
_SERVICES = ("", "rl4sys.v1.Training")
_SERVING, _NOT_SERVING, _SERVICE_UNKNOWN = 1, 2, 3


class Health:
    """Tells load balancers and supervisors whether the server takes calls. It needs no token."""

    def __init__(self) -> None:
        """To be made and used within the event loop of the server."""
        self._stopped = asyncio.Event()
        self._watchers = 0

    def stop(self) -> None:
        """Not serving from now on."""
        self._stopped.set()

    def handler(self) -> grpc.GenericRpcHandler:
        """What to add to a server."""
        return grpc.method_handlers_generic_handler(
            "grpc.health.v1.Health",
            {
                "Check": grpc.unary_unary_rpc_method_handler(self._check),
                "Watch": grpc.unary_stream_rpc_method_handler(self._watch),
            },
        )

    async def _check(self, request: bytes, context: grpc.aio.ServicerContext[bytes, bytes]) -> bytes:
        if _service(request) not in _SERVICES:
            await context.abort(grpc.StatusCode.NOT_FOUND, f"There are {', '.join(map(repr, _SERVICES))}.")
        return _encode(self._status)

    async def _watch(self, request: bytes, context: grpc.aio.ServicerContext[bytes, bytes]) -> AsyncIterator[bytes]:
        if _service(request) not in _SERVICES:
            yield _encode(_SERVICE_UNKNOWN)
            return
        if self._watchers >= MOST_WATCHERS:
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "Enough watch already. Call Check instead.")
        self._watchers += 1
        try:
            yield _encode(self._status)
            if not self._stopped.is_set():
                await self._stopped.wait()
                yield _encode(self._status)
        finally:
            self._watchers -= 1

    @property
    def _status(self) -> int:
        return _NOT_SERVING if self._stopped.is_set() else _SERVING


def _service(request: bytes) -> str | None:
    try:
        return str(StringValue.FromString(request).value)
    except DecodeError:
        return None


def _encode(status: int) -> bytes:
    return UInt32Value(value=status).SerializeToString()
