"""Calls to a service in the same process, for tests, simulations and embedded use."""

from __future__ import annotations

from collections.abc import Iterator

from rl4sys.server.access.caller import ANYONE, Caller
from rl4sys.server.service.training_service import TrainingService
from rl4sys.wire.calls import Watching
from rl4sys.wire.generated import status_pb2, training_pb2, weights_pb2


class InProcessTransport:
    """A transport without a network. Timeouts are those of the service."""

    def __init__(self, service: TrainingService, caller: Caller = ANYONE) -> None:
        self._service, self._caller = service, caller

    def join(self, request: training_pb2.JoinRequest, timeout: float) -> training_pb2.JoinReply:
        """Find or create the learner of a client."""
        return self._service.join(request, self._caller)

    def push(self, request: training_pb2.PushRequest, timeout: float) -> training_pb2.PushReply:
        """Store segments."""
        return self._service.push(request, self._caller)

    def pull(self, request: training_pb2.PullRequest, timeout: float) -> Iterator[weights_pb2.PatchChunk]:
        """The patch to a newer version, in chunks."""
        return self._service.pull(request, self._caller)

    def watch(self, request: training_pb2.WatchRequest) -> Watching:
        """New versions as they are published."""
        return self._service.watch(request, self._caller)

    def act(self, request: training_pb2.ActRequest, timeout: float) -> training_pb2.ActReply:
        """Decide on the server."""
        return self._service.act(request, self._caller)

    def report(self, request: training_pb2.ReportRequest, timeout: float) -> training_pb2.ReportReply:
        """Report the health of a client."""
        return self._service.report(request, self._caller)

    def status(self, request: status_pb2.StatusRequest, timeout: float) -> status_pb2.StatusReply:
        """The status of the server."""
        return self._service.status(request, self._caller)

    def close(self) -> None:
        """Do nothing: the service stays open for its owner."""
