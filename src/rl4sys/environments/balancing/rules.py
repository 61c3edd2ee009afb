"""The rules that balancers use today, to compare with: each chooses a backend for a request."""

from __future__ import annotations

import random
from collections.abc import Callable

from rl4sys.environments.balancing.backend_view import BackendView
from rl4sys.environments.balancing.requests import SPEEDS

Rule = Callable[[list[BackendView], int, float], int]
"""Chooses among backends for the class of a request at a time."""


class RoundRobin:
    """One backend after the other."""

    def __init__(self) -> None:
        self._next = -1

    def __call__(self, views: list[BackendView], kind: int, now: float) -> int:
        self._next = (self._next + 1) % len(views)
        return self._next


class Random:
    """Any backend."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def __call__(self, views: list[BackendView], kind: int, now: float) -> int:
        return self._rng.randrange(len(views))


class PowerOfTwo:
    """The one with fewer requests of two random backends."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def __call__(self, views: list[BackendView], kind: int, now: float) -> int:
        one, other = self._rng.sample(range(len(views)), 2)
        return one if views[one].in_flight <= views[other].in_flight else other


class Least:
    """The backend with the least of something; ties are broken at random."""

    def __init__(self, rng: random.Random, cost: Callable[[BackendView, int, int], float]) -> None:
        self._rng, self._cost = rng, cost

    def __call__(self, views: list[BackendView], kind: int, now: float) -> int:
        costs = [self._cost(view, number, kind) for number, view in enumerate(views)]
        least = min(costs)
        return self._rng.choice([number for number, cost in enumerate(costs) if cost == least])


def _connections(view: BackendView, number: int, kind: int) -> float:
    return view.in_flight


def _weighted_connections(view: BackendView, number: int, kind: int) -> float:
    return (view.in_flight + 1) / SPEEDS[number]


def _peak_ewma(view: BackendView, number: int, kind: int) -> float:
    return view.latency * (view.in_flight + 1)


def _expected_work(view: BackendView, number: int, kind: int) -> float:
    return view.expected(kind)


BASELINE = "least connections"
"""The rule that others are compared with."""
RULES: dict[str, Callable[[random.Random], Rule]] = {
    "random": Random,
    "round robin": lambda rng: RoundRobin(),
    "power of two": PowerOfTwo,
    BASELINE: lambda rng: Least(rng, _connections),
    "weighted connections": lambda rng: Least(rng, _weighted_connections),
    "peak EWMA": lambda rng: Least(rng, _peak_ewma),
    "least expected work": lambda rng: Least(rng, _expected_work),
}
"""By name. Weighted connections are given the true speeds; no other rule is."""
