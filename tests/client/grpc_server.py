"""The fake server behind a real gRPC server on loopback."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import grpc
from tests.client.fake_server import FakeServer

from rl4sys.wire.calls import CallFailed
from rl4sys.wire.generated import training_pb2_grpc


class Servicer(training_pb2_grpc.TrainingServicer):
    """Converts messages, maps errors, and remembers the tokens of its callers."""

    def __init__(self, server: FakeServer) -> None:
        self._server = server
        self.tokens: list[object] = []

    def Join(self, request: Any, context: grpc.ServicerContext) -> Any:
        self.tokens.append(dict(context.invocation_metadata()).get("authorization"))
        return _answer(context, lambda: self._server.join(request, 1.0))

    def Push(self, request: Any, context: grpc.ServicerContext) -> Any:
        return _answer(context, lambda: self._server.push(request, 1.0))

    def Pull(self, request: Any, context: grpc.ServicerContext) -> Iterator[Any]:
        yield from _answer(context, lambda: list(self._server.pull(request, 1.0)))

    def Act(self, request: Any, context: grpc.ServicerContext) -> Any:
        return _answer(context, lambda: self._server.act(request, 1.0))

    def Watch(self, request: Any, context: grpc.ServicerContext) -> Iterator[Any]:
        watching = _answer(context, lambda: self._server.watch(request))
        # False when the call has already ended: the callback would never be called.
        if not context.add_callback(watching.cancel):
            watching.cancel()
        try:
            yield from watching
        except CallFailed as error:
            _abort(context, error)


def _answer(context: grpc.ServicerContext, call: Callable[[], Any]) -> Any:
    try:
        return call()
    except CallFailed as error:
        _abort(context, error)


def _abort(context: grpc.ServicerContext, error: CallFailed) -> None:
    context.set_trailing_metadata((error.failure.to_metadata(),))
    context.abort(grpc.StatusCode[error.code.name], str(error))


@contextmanager
def listening(
    server: FakeServer, address: str, credentials: grpc.ServerCredentials | None = None
) -> Iterator[tuple[str, Servicer]]:
    pool = ThreadPoolExecutor(8)
    listener, servicer = grpc.server(pool), Servicer(server)
    training_pb2_grpc.add_TrainingServicer_to_server(servicer, listener)
    if credentials is None:
        port = listener.add_insecure_port(address)
    else:
        port = listener.add_secure_port(address, credentials)
    listener.start()
    try:
        yield (address if address.startswith("unix:") else f"127.0.0.1:{port}"), servicer
    finally:
        listener.stop(0.1).wait()
        pool.shutdown()
