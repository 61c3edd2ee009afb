"""The balanced service as a fast simulation: the same requests, backends and views, without processes or sockets."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rl4sys.environments.balancing.backend_view import BackendView
from rl4sys.environments.balancing.requests import CLASSES, Request, Speed
from rl4sys.environments.balancing.rules import Rule

OVERHEAD = 0.001
"""Seconds that proxy and network add to a request."""


class SimulatedService:
    """Backends that work on requests one by one, in order. The latency of a request is known when it is assigned."""

    def __init__(self, backends: Sequence[Speed], requests: Iterator[Request]) -> None:
        self._backends, self._requests = backends, requests
        self.views = [BackendView() for _ in backends]
        self._free_at = [0.0] * len(backends)
        self._answers: list[tuple[float, int, int, float]] = []
        self.now = 0.0
        self.kind = 0
        """The class of the present request."""
        self.arrive()

    def arrive(self) -> None:
        """Let the next request arrive; answers that come before it are seen first."""
        self.now, self.kind = next(self._requests)
        while self._answers and self._answers[0][0] <= self.now:
            at, number, kind, sent_at = heapq.heappop(self._answers)
            self.views[number].answered(kind, sent_at, at)

    def assign(self, number: int) -> float:
        """Send the present request to a backend; returns its latency in seconds."""
        start = max(self.now, self._free_at[number])
        self._free_at[number] = finish = self._backends[number].finish(start, CLASSES[self.kind].work)
        heapq.heappush(self._answers, (finish + OVERHEAD, number, self.kind, self.now))
        self.views[number].sent(self.kind, self.now)
        return finish + OVERHEAD - self.now


@dataclass(frozen=True, slots=True)
class Latencies:
    """The latencies of requests, by when they arrived."""

    at: NDArray[np.float64]
    seconds: NDArray[np.float64]

    @property
    def mean(self) -> float:
        """In seconds."""
        return float(self.seconds.mean())

    def quantile(self, share: float) -> float:
        """In seconds."""
        return float(np.quantile(self.seconds, share))


def simulate(
    backends: Sequence[Speed], requests: Iterator[Request], rule: Rule, seconds: float, burn_in: float = 5.0
) -> Latencies:
    """Balance requests for some seconds by a rule; the first seconds are left out."""
    service = SimulatedService(backends, requests)
    at, latencies = [], []
    while service.now < seconds + burn_in:
        latency = service.assign(rule(service.views, service.kind, service.now))
        if service.now >= burn_in:
            at.append(service.now)
            latencies.append(latency)
        service.arrive()
    return Latencies(np.array(at), np.array(latencies))
