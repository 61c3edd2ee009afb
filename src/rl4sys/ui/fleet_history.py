"""The last hour of a server, as curves: what its status said, every two seconds, in memory of fixed size."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

SAMPLES = 1_800
"""Of one server: an hour, every two seconds."""
MOST_LEARNERS = 8
"""With curves of their own: those that appeared first."""
_SHORTEST = 1.0
"""Seconds between two samples."""
_RATE_SAMPLES = 5
"""A rate is taken over so many samples."""
_SERVER = ("clients", "cpu", "memory_mb")
_LEARNER = ("queued", "steps_per_second", "return", "version")


class FleetHistory:
    """Samples of one server."""

    def __init__(self, samples: int = SAMPLES) -> None:
        columns = len(_SERVER) + MOST_LEARNERS * len(_LEARNER)
        self._times = np.zeros(samples)
        self._values = np.full((samples, columns), np.nan, np.float32)
        self._steps = np.full((samples, MOST_LEARNERS), np.nan)
        self._count = 0
        self._names: list[str] = []

    @property
    def since(self) -> float | None:
        """The time of the oldest sample, in seconds since 1970; None without one."""
        return float(self._times[self._rows()[0]]) if self._count else None

    def add(self, time: float, status: Mapping[str, Any], connected: int) -> None:
        """Take a sample, unless the last one is too young; the oldest is forgotten."""
        if self._count and time < self._times[(self._count - 1) % len(self._times)] + _SHORTEST:
            return
        row = self._count % len(self._times)
        self._times[row], self._values[row], self._steps[row] = time, np.nan, np.nan
        server = status["server"]
        self._values[row, : len(_SERVER)] = (connected, server["cpu"], server["memory_bytes"] / 1e6)
        self._count += 1
        for learner in status["learners"]:
            place = self._place(learner["learner"])
            if place is None:
                continue
            self._steps[row, place] = learner["learned_steps"]
            start = len(_SERVER) + place * len(_LEARNER)
            self._values[row, start : start + len(_LEARNER)] = (
                learner["queued_segments"],
                self._rate(place),
                learner.get("mean_return", np.nan),
                learner["version"],
            )

    def steps_per_second(self, learner: str) -> float | None:
        """How fast a learner has learned over the last samples; None if that is not known."""
        if learner not in self._names or not self._count:
            return None
        rate = self._rate(self._names.index(learner))
        return None if np.isnan(rate) else float(rate)

    def curves(self) -> dict[str, Any]:
        """Times and values by name, in the order of time; gaps are null."""
        rows = self._rows()
        names = [*_SERVER, *(f"{name}/{each}" for name in self._names for each in _LEARNER)]
        return {
            "since": self.since,
            "times": [round(float(time), 1) for time in self._times[rows]],
            "learners": list(self._names),
            "series": {name: _numbers(self._values[rows, column]) for column, name in enumerate(names)},
        }

    def newest(self) -> dict[str, Any]:
        """The last sample, in the form of `curves`."""
        row = [(self._count - 1) % len(self._times)] if self._count else []
        names = [*_SERVER, *(f"{name}/{each}" for name in self._names for each in _LEARNER)]
        return {
            "times": [round(float(self._times[each]), 1) for each in row],
            "learners": list(self._names),
            "series": {name: _numbers(self._values[row, column]) for column, name in enumerate(names)},
        }

    def _rows(self) -> list[int]:
        size = len(self._times)
        return [number % size for number in range(max(0, self._count - size), self._count)]

    def _place(self, learner: str) -> int | None:
        if learner in self._names:
            return self._names.index(learner)
        if len(self._names) == MOST_LEARNERS:
            return None
        self._names.append(learner)
        return len(self._names) - 1

    def _rate(self, place: int) -> float:
        rows = [row for row in self._rows()[-_RATE_SAMPLES:] if not np.isnan(self._steps[row, place])]
        if len(rows) < 2 or self._times[rows[-1]] <= self._times[rows[0]]:
            return float("nan")
        grown = self._steps[rows[-1], place] - self._steps[rows[0], place]
        # A learner that started over counts from zero again.
        return float(max(0.0, grown) / (self._times[rows[-1]] - self._times[rows[0]]))


def _numbers(values: np.ndarray[Any, Any]) -> list[float | None]:
    return [None if np.isnan(value) else float(f"{value:.4g}") for value in values]
