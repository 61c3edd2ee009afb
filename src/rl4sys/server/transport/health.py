"""The gRPC health service (`grpc.health.v1`), for load balancers and supervisors. It needs no token."""

from __future__ import annotations

from typing import Any

import grpc
import grpc.aio
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

MAX_WATCHERS = 64
"""Watchers of health over all callers, who cannot be distinguished without tokens."""
_TRAINING = "rl4sys.v1.Training"


class HealthService(health.aio.HealthServicer):  # type: ignore[misc]  # the package has no types
    """Says whether the server stores experience, to a bounded number of watchers. For the event loop of the server."""

    def __init__(self) -> None:
        super().__init__()
        self.max_watchers = MAX_WATCHERS
        self._watchers = 0

    async def start(self, server: grpc.aio.Server) -> None:
        """Add the service to a server that has not started yet."""
        await self.tell(is_ready=True)
        health_pb2_grpc.add_HealthServicer_to_server(self, server)

    async def tell(self, *, is_ready: bool) -> None:
        """Answer with this from now on, for the server (an empty name) and for its service."""
        answers = health_pb2.HealthCheckResponse
        for service in ("", _TRAINING):
            await self.set(service, answers.SERVING if is_ready else answers.NOT_SERVING)

    async def Watch(self, request: Any, context: Any) -> None:  # noqa: N802 (as gRPC names it)
        """The state of one service whenever it changes, as long as there are not too many watchers."""
        if self._watchers >= self.max_watchers:
            await context.abort(
                grpc.StatusCode.RESOURCE_EXHAUSTED, f"{self.max_watchers} callers watch already. Call Check instead."
            )
        self._watchers += 1
        try:
            await super().Watch(request, context)
        finally:
            self._watchers -= 1
