"""Calls over gRPC: TCP or a Unix socket, with TLS and a token where they are set."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import grpc
from google.protobuf.message import Message

from rl4sys.client.client_settings import ClientSettings, Tls
from rl4sys.client.section import SettingsError
from rl4sys.client.tokens import Token
from rl4sys.client.traffic import Traffic
from rl4sys.wire import Failure, parse
from rl4sys.wire.calls import CallFailed, Code, Watching
from rl4sys.wire.generated import status_pb2, training_pb2, weights_pb2
from rl4sys.wire.message_sizes import JOIN_REPLY_BYTES, REPLY_FIELDS, TRANSPORT_BYTES

_OPTIONS = [
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    # A watch may be silent for hours; pings on it detect half-open connections.
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.max_send_message_length", TRANSPORT_BYTES),
    ("grpc.max_receive_message_length", TRANSPORT_BYTES),
    # The courier decides when to retry a call; reconnecting may happen a little sooner.
    ("grpc.initial_reconnect_backoff_ms", 100),
    # Also the deadline of one attempt to connect: three round trips with TLS, of up to three seconds.
    ("grpc.min_reconnect_backoff_ms", 10_000),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    ("grpc.enable_retries", 0),
]
_SERVICE = "/rl4sys.v1.Training/"
_CODES = {code.name: code for code in Code}

R = TypeVar("R")


class GrpcTransport:
    """One channel to one server. It connects at the first call and reconnects by itself."""

    def __init__(self, settings: ClientSettings) -> None:
        address = settings.server
        self._token = Token(settings.token or "", settings.token_file)
        if settings.tls is None:
            self._channel = grpc.insecure_channel(address, _OPTIONS)
        else:
            self._channel = grpc.secure_channel(address, _credentials(settings.tls), _OPTIONS)
        self.traffic = Traffic()
        self._stub = _Methods(self._channel, self.traffic)

    def join(self, request: training_pb2.JoinRequest, timeout: float) -> training_pb2.JoinReply:
        """Find or create the learner of a client."""
        reply: training_pb2.JoinReply = self.call(self._stub.Join, request, timeout)
        return reply

    def push(self, request: training_pb2.PushRequest, timeout: float) -> training_pb2.PushReply:
        """Store segments."""
        reply: training_pb2.PushReply = self.call(self._stub.Push, request, timeout)
        return reply

    def pull(self, request: training_pb2.PullRequest, timeout: float) -> Iterator[weights_pb2.PatchChunk]:
        """The patch to a newer version, in parts."""
        return _Stream(lambda: self._stub.Pull(request, timeout=timeout, metadata=self._metadata()))

    def watch(self, request: training_pb2.WatchRequest) -> Watching:
        """New versions as they are published. Keepalive, not a deadline, ends the stream when the server is gone."""
        return _Stream(lambda: self._stub.Watch(request, metadata=self._metadata()))

    def act(self, request: training_pb2.ActRequest, timeout: float) -> training_pb2.ActReply:
        """Choose actions on the server."""
        reply: training_pb2.ActReply = self.call(self._stub.Act, request, timeout)
        return reply

    def report(self, request: training_pb2.ReportRequest, timeout: float) -> training_pb2.ReportReply:
        """Report the health of this client."""
        reply: training_pb2.ReportReply = self.call(self._stub.Report, request, timeout)
        return reply

    def status(self, request: status_pb2.StatusRequest, timeout: float) -> status_pb2.StatusReply:
        """The status of the server."""
        reply: status_pb2.StatusReply = self.call(self._stub.Status, request, timeout)
        return reply

    def close(self) -> None:
        """Close the connection; pending calls fail as CANCELLED."""
        self._channel.close()

    def unary(self, path: str, reply: type[Message]) -> Any:
        """A method of another service on the same channel, for `call`."""
        return self._channel.unary_unary(path, _serialize, partial(_read, reply, TRANSPORT_BYTES))

    def uploading(self, path: str, reply: type[Message]) -> Any:
        """The same for a stream of requests."""
        return self._channel.stream_unary(path, _serialize, partial(_read, reply, TRANSPORT_BYTES))

    def stream(self, path: str, reply: type[Message], request: Message, timeout: float) -> Iterator[Any]:
        """The replies of a method of another service on the same channel."""
        method = self._channel.unary_stream(path, _serialize, partial(_read, reply, TRANSPORT_BYTES))
        return _Stream(lambda: method(request, timeout=timeout, metadata=self._metadata()))

    def _metadata(self) -> tuple[tuple[str, str], ...]:
        token = self._token.current()
        return (("authorization", f"Bearer {token}"),) if token else ()

    def call(self, method: Callable[..., R], request: object, timeout: float) -> R:
        """Call a method with the token of this client."""
        try:
            return method(request, timeout=timeout, metadata=self._metadata())
        except grpc.RpcError as error:
            _raise(error)
        except ValueError as error:
            # gRPC raises this for a channel that was closed meanwhile.
            raise CallFailed(Code.CANCELLED, str(error)) from error


class _Methods:
    """The methods of the service. Replies are parsed within limits: a few megabytes could unfold to hundreds."""

    def __init__(self, channel: grpc.Channel, traffic: Traffic) -> None:
        def codec(
            reply: type[Message], most_bytes: int
        ) -> tuple[Callable[[Message], bytes], Callable[[bytes], Message]]:
            return (
                lambda request: traffic.sent(_serialize(request)),
                lambda data: _read(reply, most_bytes, traffic.received(data)),
            )

        def unary(name: str, reply: type[Message], most_bytes: int = TRANSPORT_BYTES) -> Any:
            return channel.unary_unary(_SERVICE + name, *codec(reply, most_bytes))

        def stream(name: str, reply: type[Message]) -> Any:
            return channel.unary_stream(_SERVICE + name, *codec(reply, TRANSPORT_BYTES))

        self.Join = unary("Join", training_pb2.JoinReply, most_bytes=JOIN_REPLY_BYTES)
        self.Push = unary("Push", training_pb2.PushReply)
        self.Act = unary("Act", training_pb2.ActReply)
        self.Report = unary("Report", training_pb2.ReportReply)
        self.Status = unary("Status", status_pb2.StatusReply)
        self.Pull = stream("Pull", weights_pb2.PatchChunk)
        self.Watch = stream("Watch", training_pb2.NewVersion)


def _serialize(request: Message) -> bytes:
    return request.SerializeToString()


def _read(reply: type[Message], most_bytes: int, data: bytes) -> Message:
    return parse(reply, data, most_bytes=most_bytes, most_fields=REPLY_FIELDS)


class _Stream(Iterator[Any]):
    """The messages of one call. Ends when cancelled; raises `CallFailed` when the connection is lost."""

    def __init__(self, begin: Callable[[], Any]) -> None:
        try:
            self._call = begin()
        except ValueError as error:
            raise CallFailed(Code.CANCELLED, str(error)) from error
        self._cancelled = False

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        try:
            return next(self._call)
        except grpc.RpcError as error:
            if self._cancelled:
                raise StopIteration from None
            _raise(error)

    def cancel(self) -> None:
        """End the stream; any thread may do so."""
        self._cancelled = True
        self._call.cancel()


def _raise(error: Any) -> NoReturn:
    """Raise `CallFailed` for an error of gRPC."""
    code = error.code()
    metadata = error.trailing_metadata() or ()
    failure = Failure.from_metadata((entry[0], entry[1]) for entry in metadata)
    # An unexpected code, from a proxy or a broken peer, is a fault of the connection, not of the request.
    known = _CODES.get(code.name, Code.UNAVAILABLE) if code is not None else Code.UNAVAILABLE
    if known is Code.UNKNOWN:
        known = Code.INTERNAL
    details = error.details() or known.value
    if known is Code.UNAVAILABLE and failure == Failure():
        raise _unreached(details) from error
    raise CallFailed(known, details, failure) from error


def _unreached(details: str) -> CallFailed:
    """A call that reached no server, in the words of the C++ client: those of gRPC differ from release to release."""
    lower = details.lower()
    # With '_' from BoringSSL, with ' ' from OpenSSL.
    if "certificate_verify_failed" in lower or "certificate verify failed" in lower:
        return CallFailed(
            Code.UNAUTHENTICATED,
            "The certificate of the server is not trusted: it is not signed by the CA in `tls: {ca: FILE}`, or has "
            "expired. Give the CA of this server, or renew its certificate.",
        )
    if "timed out" in lower:
        # Not that there is no server: it may be far away, or busy.
        return CallFailed(Code.DEADLINE_EXCEEDED, "the attempt to connect timed out")
    return CallFailed(Code.UNAVAILABLE, "connection refused" if "connection refused" in lower else details)


def _credentials(tls: Tls) -> grpc.ChannelCredentials:
    if (tls.cert is None) != (tls.key is None):
        raise SettingsError("tls: got only one of cert and key; give both or neither.")
    return grpc.ssl_channel_credentials(_bytes(tls.ca), _bytes(tls.key), _bytes(tls.cert))


def _bytes(path: Path | None) -> bytes | None:
    if path is None:
        return None
    try:
        return path.read_bytes()
    except OSError as error:
        raise SettingsError(f"tls: {path} cannot be read: {error.strerror}.") from error
