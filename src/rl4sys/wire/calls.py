"""The calls of a client, independent of the transport: gRPC, or a service in the same process."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import Protocol

from rl4sys.wire.failures import Failure
from rl4sys.wire.generated import status_pb2, training_pb2, weights_pb2


class Code(enum.StrEnum):
    """Why a call failed, by the names of the gRPC status codes."""

    CANCELLED = "CANCELLED"
    UNKNOWN = "UNKNOWN"
    INVALID_ARGUMENT = "INVALID_ARGUMENT"
    DEADLINE_EXCEEDED = "DEADLINE_EXCEEDED"
    NOT_FOUND = "NOT_FOUND"
    PERMISSION_DENIED = "PERMISSION_DENIED"
    UNAUTHENTICATED = "UNAUTHENTICATED"
    RESOURCE_EXHAUSTED = "RESOURCE_EXHAUSTED"
    FAILED_PRECONDITION = "FAILED_PRECONDITION"
    UNIMPLEMENTED = "UNIMPLEMENTED"
    INTERNAL = "INTERNAL"
    UNAVAILABLE = "UNAVAILABLE"


class CallFailed(Exception):
    """A call did not end in OK: the code and the failure are for programs, the message is for people."""

    def __init__(self, code: Code, message: str, failure: Failure | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.failure = failure or Failure()


class Watching(Protocol):
    """A stream of new versions, which another thread may cancel."""

    def __iter__(self) -> Iterator[training_pb2.NewVersion]:
        """Wait for the next version; ends when cancelled, raises `CallFailed` when the server is lost."""

    def cancel(self) -> None:
        """End the stream."""


class Transport(Protocol):
    """Carries calls to a training service. Every method may be called from any thread and raises `CallFailed`."""

    def join(self, request: training_pb2.JoinRequest, timeout: float) -> training_pb2.JoinReply:
        """Find or create the learner of a client."""

    def push(self, request: training_pb2.PushRequest, timeout: float) -> training_pb2.PushReply:
        """Store segments."""

    def pull(self, request: training_pb2.PullRequest, timeout: float) -> Iterator[weights_pb2.PatchChunk]:
        """The patch to a newer version, in chunks."""

    def watch(self, request: training_pb2.WatchRequest) -> Watching:
        """New versions as they are published."""

    def act(self, request: training_pb2.ActRequest, timeout: float) -> training_pb2.ActReply:
        """Decide on the server."""

    def report(self, request: training_pb2.ReportRequest, timeout: float) -> training_pb2.ReportReply:
        """Report the health of a client."""

    def status(self, request: status_pb2.StatusRequest, timeout: float) -> status_pb2.StatusReply:
        """The status of the server."""

    def close(self) -> None:
        """Close the connection."""
