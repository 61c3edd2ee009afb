"""`grpc.health.v1`, by hand: its two messages have the wire form of wrapped values, so no package is needed."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import grpc
from google.protobuf.message import DecodeError
from google.protobuf.wrappers_pb2 import StringValue, UInt32Value

_SERVICES = ("", "rl4sys.v1.Training")
_SERVING, _NOT_SERVING, _SERVICE_UNKNOWN = 1, 2, 3
_LOOK_SECONDS = 30.0


class Health:
    """Tells load balancers and supervisors whether the server takes calls. It needs no token."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._status = _SERVING

    def stop(self) -> None:
        """Not serving from now on."""
        with self._changed:
            self._status = _NOT_SERVING
            self._changed.notify_all()

    def handler(self) -> grpc.GenericRpcHandler:
        """What to add to a server."""
        return grpc.method_handlers_generic_handler(
            "grpc.health.v1.Health",
            {
                "Check": grpc.unary_unary_rpc_method_handler(self._check),
                "Watch": grpc.unary_stream_rpc_method_handler(self._watch),
            },
        )

    def _check(self, request: bytes, context: grpc.ServicerContext) -> bytes:
        if _service(request) not in _SERVICES:
            context.abort(grpc.StatusCode.NOT_FOUND, f"There are {', '.join(map(repr, _SERVICES))}.")
        return _encode(self._status)

    def _watch(self, request: bytes, context: grpc.ServicerContext) -> Iterator[bytes]:
        if _service(request) not in _SERVICES:
            yield _encode(_SERVICE_UNKNOWN)
            return
        told = None
        while context.is_active() and told != _NOT_SERVING:
            if told != self._status:
                told = self._status
                yield _encode(told)
            with self._changed:
                self._changed.wait_for(lambda: self._status == _NOT_SERVING, _LOOK_SECONDS)


def _service(request: bytes) -> str | None:
    try:
        return str(StringValue.FromString(request).value)
    except DecodeError:
        return None


def _encode(status: int) -> bytes:
    return UInt32Value(value=status).SerializeToString()
