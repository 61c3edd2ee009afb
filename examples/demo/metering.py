"""Counts what a client sends and receives, by standing between it and its connection."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from google.protobuf.message import Message

from rl4sys.wire.calls import Transport, Watching
from rl4sys.wire.generated import status_pb2, training_pb2, weights_pb2

M = TypeVar("M", bound=Message)


class MeteredTransport:
    """Passes every call on. Bytes are those of messages, without the framing around them."""

    def __init__(self, carrier: Transport) -> None:
        self._carrier = carrier
        self.sent = 0
        self.received = 0
        self.versions = 0
        """Versions of the policy that came, as news or in answer to a pull."""

    def join(self, request: training_pb2.JoinRequest, timeout: float) -> training_pb2.JoinReply:
        """Find or make the learner of a client."""
        return self._came(self._carrier.join(self._went(request), timeout))

    def push(self, request: training_pb2.PushRequest, timeout: float) -> training_pb2.PushReply:
        """Store segments."""
        return self._came(self._carrier.push(self._went(request), timeout))

    def pull(self, request: training_pb2.PullRequest, timeout: float) -> Iterator[weights_pb2.PatchChunk]:
        """The patch to a newer version, in parts."""
        for number, chunk in enumerate(self._carrier.pull(self._went(request), timeout)):
            self.versions += number == 0
            yield self._came(chunk)

    def watch(self, request: training_pb2.WatchRequest) -> Watching:
        """New versions as they are published."""
        return _MeteredWatch(self, self._carrier.watch(self._went(request)))

    def act(self, request: training_pb2.ActRequest, timeout: float) -> training_pb2.ActReply:
        """Decide on the server."""
        return self._came(self._carrier.act(self._went(request), timeout))

    def status(self, request: status_pb2.StatusRequest, timeout: float) -> status_pb2.StatusReply:
        """What the server is doing; not counted, since a client does not need to ask."""
        return self._carrier.status(request, timeout)

    def close(self) -> None:
        """Let go of the connection."""
        self._carrier.close()

    def heard(self, news: training_pb2.NewVersion) -> training_pb2.NewVersion:
        """Count what a watch brought; without a patch the weights are still to be pulled."""
        self.versions += news.HasField("patch")
        return self._came(news)

    def _went(self, message: M) -> M:
        self.sent += message.ByteSize()
        return message

    def _came(self, message: M) -> M:
        self.received += message.ByteSize()
        return message


class _MeteredWatch:
    """A watch whose news are counted."""

    def __init__(self, meter: MeteredTransport, watching: Watching) -> None:
        self._meter = meter
        self._watching = watching

    def __iter__(self) -> Iterator[training_pb2.NewVersion]:
        return map(self._meter.heard, self._watching)

    def cancel(self) -> None:
        """End the stream."""
        self._watching.cancel()
