"""A transport that counts the bytes a client sends and receives."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from google.protobuf.message import Message

from rl4sys.wire.calls import Transport, Watching
from rl4sys.wire.generated import status_pb2, training_pb2, weights_pb2

M = TypeVar("M", bound=Message)


class MeteredTransport:
    """Forwards every call. Counts the bytes of messages, without the framing of gRPC."""

    def __init__(self, carrier: Transport) -> None:
        self._carrier = carrier
        self.sent = 0
        self.received = 0
        self.versions = 0
        """Policy versions received, by watching or by a pull."""

    def join(self, request: training_pb2.JoinRequest, timeout: float) -> training_pb2.JoinReply:
        """Find or create the learner of a client."""
        return self._count_received(self._carrier.join(self._count_sent(request), timeout))

    def push(self, request: training_pb2.PushRequest, timeout: float) -> training_pb2.PushReply:
        """Store segments."""
        return self._count_received(self._carrier.push(self._count_sent(request), timeout))

    def pull(self, request: training_pb2.PullRequest, timeout: float) -> Iterator[weights_pb2.PatchChunk]:
        """The patch to a newer version, in parts."""
        for number, chunk in enumerate(self._carrier.pull(self._count_sent(request), timeout)):
            self.versions += number == 0
            yield self._count_received(chunk)

    def watch(self, request: training_pb2.WatchRequest) -> Watching:
        """New versions as they are published."""
        return _MeteredWatch(self, self._carrier.watch(self._count_sent(request)))

    def act(self, request: training_pb2.ActRequest, timeout: float) -> training_pb2.ActReply:
        """Decide on the server."""
        return self._count_received(self._carrier.act(self._count_sent(request), timeout))

    def report(self, request: training_pb2.ReportRequest, timeout: float) -> training_pb2.ReportReply:
        """Tell the server how the client is doing."""
        return self._count_received(self._carrier.report(self._count_sent(request), timeout))

    def status(self, request: status_pb2.StatusRequest, timeout: float) -> status_pb2.StatusReply:
        """The status of the server; not counted, since only the display asks for it."""
        return self._carrier.status(request, timeout)

    def close(self) -> None:
        """Close the connection."""
        self._carrier.close()

    def heard(self, news: training_pb2.NewVersion) -> training_pb2.NewVersion:
        """Count a message of a watch; without a patch the weights are still to be pulled."""
        self.versions += news.HasField("patch")
        return self._count_received(news)

    def _count_sent(self, message: M) -> M:
        self.sent += message.ByteSize()
        return message

    def _count_received(self, message: M) -> M:
        self.received += message.ByteSize()
        return message


class _MeteredWatch:
    """A watch whose messages are counted."""

    def __init__(self, meter: MeteredTransport, watching: Watching) -> None:
        self._meter = meter
        self._watching = watching

    def __iter__(self) -> Iterator[training_pb2.NewVersion]:
        return map(self._meter.heard, self._watching)

    def cancel(self) -> None:
        """End the stream."""
        self._watching.cancel()
