"""What the demo has seen so far, put together from what the client tells."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

RECENT = 50
"""Episodes of the moving mean."""
_FEWEST = 10
"""Episodes before it says anything."""
SOLVED = 200.0
"""The return from which a landing counts as safe."""


@dataclass(frozen=True, slots=True)
class Report:
    """How things stood at one moment of the flight."""

    steps: int
    seconds: float
    speed: float
    """Steps per second since the report before."""
    mean_return: float | None
    """Of the newest episodes."""
    median: float
    p99: float
    """Microseconds that a decision took since the report before."""
    version: int
    versions: int
    """Versions that came."""
    sent: int
    received: int
    """Bytes, from the start."""
    waiting: int
    drops: int
    memory: int
    server: dict[str, Any]


@dataclass(slots=True)
class Story:
    """Everything that display, picture and summary need."""

    reports: list[Report] = field(default_factory=list)
    episodes: list[tuple[int, float]] = field(default_factory=list)
    """Step and return of each episode that ended."""
    means: list[tuple[int, float]] = field(default_factory=list)
    """Step and mean of the newest episodes, for each episode but the first few."""
    evaluation: list[float] = field(default_factory=list)
    latency: dict[str, float] = field(default_factory=dict)
    """Median and p99 of all decisions, in microseconds."""
    _recent: deque[float] = field(default_factory=lambda: deque(maxlen=RECENT))

    def hear(self, told: dict[str, Any]) -> None:
        """Take in one line of the client."""
        match told["kind"]:
            case "flight":
                self._hear_flight(told)
            case "flown":
                self.latency = told["latency"]
            case "evaluated":
                self.evaluation = told["returns"]

    def _hear_flight(self, told: dict[str, Any]) -> None:
        for step, value in told["returns"]:
            self._recent.append(value)
            self.episodes.append((step, value))
            if len(self._recent) >= _FEWEST:
                self.means.append((step, sum(self._recent) / len(self._recent)))
        self.reports.append(
            Report(
                steps=told["steps"],
                seconds=told["seconds"],
                speed=told["speed"],
                mean_return=self.means[-1][1] if self.means else None,
                median=told["latency"]["median"],
                p99=told["latency"]["p99"],
                version=told["version"] or 0,
                versions=told["versions"],
                sent=told["sent"],
                received=told["received"],
                waiting=told["waiting"],
                drops=told["drops"],
                memory=told["memory"],
                server=told["server"],
            )
        )
