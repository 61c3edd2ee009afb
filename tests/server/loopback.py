"""Calls over a real socket, with the generated stub."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import grpc

from rl4sys.wire import Failure
from rl4sys.wire.calls import CallFailed, Code, Watching
from rl4sys.wire.generated import status_pb2, training_pb2, training_pb2_grpc, weights_pb2


class StubTransport:
    def __init__(self, port: int, token: str | None = None) -> None:
        self._channel = grpc.insecure_channel(f"127.0.0.1:{port}")
        self._stub = training_pb2_grpc.TrainingStub(self._channel)
        self._metadata = (("authorization", f"Bearer {token}"),) if token is not None else ()

    def _call(self, method: Callable[..., Any], request: Any, timeout: float) -> Any:
        try:
            return method(request, timeout=timeout, metadata=self._metadata)
        except grpc.RpcError as error:
            raise _failed(error) from error

    def join(self, request: training_pb2.JoinRequest, timeout: float) -> training_pb2.JoinReply:
        return self._call(self._stub.Join, request, timeout)

    def push(self, request: training_pb2.PushRequest, timeout: float) -> training_pb2.PushReply:
        return self._call(self._stub.Push, request, timeout)

    def act(self, request: training_pb2.ActRequest, timeout: float) -> training_pb2.ActReply:
        return self._call(self._stub.Act, request, timeout)

    def report(self, request: training_pb2.ReportRequest, timeout: float) -> training_pb2.ReportReply:
        return self._call(self._stub.Report, request, timeout)

    def status(self, request: status_pb2.StatusRequest, timeout: float) -> status_pb2.StatusReply:
        return self._call(self._stub.Status, request, timeout)

    def pull(self, request: training_pb2.PullRequest, timeout: float) -> Iterator[weights_pb2.PatchChunk]:
        try:
            yield from self._stub.Pull(request, timeout=timeout, metadata=self._metadata)
        except grpc.RpcError as error:
            raise _failed(error) from error

    def watch(self, request: training_pb2.WatchRequest) -> Watching:
        return _Watching(self._stub.Watch(request, metadata=self._metadata))

    def close(self) -> None:
        self._channel.close()


class _Watching:
    def __init__(self, call: Any) -> None:
        self._call = call

    def __iter__(self) -> Iterator[training_pb2.NewVersion]:
        try:
            yield from self._call
        except grpc.RpcError as error:
            if error.code() is not grpc.StatusCode.CANCELLED:
                raise _failed(error) from error

    def cancel(self) -> None:
        self._call.cancel()


def _failed(error: Any) -> CallFailed:
    return CallFailed(Code(error.code().name), error.details(), Failure.from_metadata(error.trailing_metadata() or ()))
