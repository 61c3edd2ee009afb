"""The requests of a service: three classes, arriving at random, and backends of unequal speed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np


class RequestClass(NamedTuple):
    """One kind of request."""

    name: str
    share: float
    """Of all requests."""
    work: float
    """Seconds on a backend of speed 1."""


CLASSES = (RequestClass("small", 0.90, 0.005), RequestClass("medium", 0.09, 0.050), RequestClass("large", 0.01, 0.500))
SPEEDS = (1.0, 1.0, 2.0, 4.0)
"""Of the backends."""
MEAN_WORK = sum(each.share * each.work for each in CLASSES)
LOAD = 0.5
"""The share of all capacity that requests ask for by default."""
RATE = LOAD * sum(SPEEDS) / MEAN_WORK
"""Requests per second at that load."""


class Request(NamedTuple):
    """A request that arrives at a time, in seconds since the start."""

    at: float
    kind: int
    """The index of its class."""


@dataclass(frozen=True, slots=True)
class Disturbance:
    """The fastest backend is slower for a part of every period, as when it compacts or collects garbage."""

    slowdown: float = 8.0
    period: float = 30.0
    slow_for: float = 10.0

    def factor(self, at: float) -> float:
        """What the speed is divided by at a time: the last part of each period is slow."""
        return self.slowdown if at % self.period >= self.period - self.slow_for else 1.0

    def next_change(self, at: float) -> float:
        """When the factor changes next."""
        start = at - at % self.period
        slow_from = start + self.period - self.slow_for
        return slow_from if at < slow_from else start + self.period


class Speed(NamedTuple):
    """The speed of one backend over time."""

    base: float
    disturbance: Disturbance | None = None

    def at(self, time: float) -> float:
        """The speed at a time."""
        return self.base if self.disturbance is None else self.base / self.disturbance.factor(time)

    def finish(self, start: float, work: float) -> float:
        """When work that starts at a time is done."""
        if self.disturbance is None:
            return start + work / self.base
        while True:
            speed, change = self.at(start), self.disturbance.next_change(start)
            if start + work / speed <= change:
                return start + work / speed
            work -= (change - start) * speed
            start = change


def speeds(*, chaos: bool) -> tuple[Speed, ...]:
    """The speeds of all backends; with chaos, the fastest is disturbed."""
    fastest = max(range(len(SPEEDS)), key=SPEEDS.__getitem__)
    return tuple(
        Speed(base, Disturbance() if chaos and number == fastest else None) for number, base in enumerate(SPEEDS)
    )


def arrivals(rate: float, rng: np.random.Generator) -> Iterator[Request]:
    """Requests without end, at random intervals (a Poisson process)."""
    shares = np.cumsum([each.share for each in CLASSES])
    at = 0.0
    while True:
        gaps, draws = rng.exponential(1.0 / rate, 1024), rng.random(1024)
        for gap, draw in zip(gaps.tolist(), np.searchsorted(shares, draws, side="right").tolist(), strict=True):
            at += gap
            yield Request(at, min(draw, len(CLASSES) - 1))
