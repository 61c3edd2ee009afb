"""The service behind gRPC: bytes into messages, tokens into callers, failures into status codes. Nothing else."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import NoReturn, TypeVar

import grpc
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


class GrpcAdapter:
    """The handlers of `rl4sys.v1.Training`."""

    def __init__(self, service: TrainingService, tokens: TokenFile | None) -> None:
        self._service, self._tokens = service, tokens
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

    def _join(self, data: bytes, context: grpc.ServicerContext) -> training_pb2.JoinReply:
        caller = self._caller(context)
        return self._service.join(_parsed(training_pb2.JoinRequest, data), caller)

    def _push(self, data: bytes, context: grpc.ServicerContext) -> training_pb2.PushReply:
        caller = self._caller(context)
        # A few more than are taken, so that the service can say how many they were.
        request = _parsed(training_pb2.PushRequest, data, self._most_bytes, 2 * self._most_segments + 16)
        return self._service.push(request, caller)

    def _act(self, data: bytes, context: grpc.ServicerContext) -> training_pb2.ActReply:
        caller = self._caller(context)
        return self._service.act(_parsed(training_pb2.ActRequest, data, self._most_bytes), caller)

    def _status(self, data: bytes, context: grpc.ServicerContext) -> status_pb2.StatusReply:
        caller = self._caller(context)
        return self._service.status(_parsed(status_pb2.StatusRequest, data), caller)

    def _pull(self, data: bytes, context: grpc.ServicerContext) -> Iterator[weights_pb2.PatchChunk]:
        caller = self._caller(context)
        yield from self._service.pull(_parsed(training_pb2.PullRequest, data), caller)

    def _watch(self, data: bytes, context: grpc.ServicerContext) -> Iterator[training_pb2.NewVersion]:
        caller = self._caller(context)
        watching = self._service.watch(_parsed(training_pb2.WatchRequest, data), caller)
        if not context.add_callback(watching.cancel):
            # The call was over before it began.
            watching.cancel()
        yield from watching

    def _caller(self, context: grpc.ServicerContext) -> Caller:
        """First of all: who may not call learns nothing else."""
        if self._tokens is None:
            return Caller(peer=context.peer())
        try:
            return self._tokens.authenticate(context.invocation_metadata(), context.peer())
        except CallFailed as error:
            self._service.failed_calls[error.code.value] += 1
            raise


def _parsed(kind: type[M], data: bytes, most_bytes: int = 1 << 18, most_fields: int = 4096) -> M:
    try:
        return parse(kind, data, most_bytes=most_bytes, most_fields=most_fields)
    except ContractViolation as error:
        raise invalid(str(error)) from error


def _unary(answer: Callable[[bytes, grpc.ServicerContext], Message]) -> grpc.RpcMethodHandler[bytes, bytes]:
    def handle(data: bytes, context: grpc.ServicerContext) -> bytes:
        try:
            return answer(data, context).SerializeToString()
        except Exception as error:  # whatever it is, the client gets a code that it knows
            _abort(context, error)

    return grpc.unary_unary_rpc_method_handler(handle)


def _stream(answer: Callable[[bytes, grpc.ServicerContext], Iterator[Message]]) -> grpc.RpcMethodHandler[bytes, bytes]:
    def handle(data: bytes, context: grpc.ServicerContext) -> Iterator[bytes]:
        try:
            for message in answer(data, context):
                yield message.SerializeToString()
        except Exception as error:  # as above
            _abort(context, error)

    return grpc.unary_stream_rpc_method_handler(handle)


def _abort(context: grpc.ServicerContext, error: Exception) -> NoReturn:
    if not isinstance(error, CallFailed):
        _log.error("A call failed in an unexpected way.", exc_info=error)
        error = CallFailed(Code.INTERNAL, "The server has a fault; its log says more. Report it.", Failure())
    context.set_trailing_metadata((error.failure.to_metadata(),))
    context.abort(grpc.StatusCode[error.code.value], str(error)[:_LONGEST_DETAILS])
    raise AssertionError("abort always raises")
