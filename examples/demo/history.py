"""The history of a flight, collected from the messages of the client."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

RECENT = 50
"""Episodes of the moving mean."""
_FEWEST = 10
"""Episodes before there is a mean."""
SOLVED = 200.0
"""The return from which a landing counts as safe."""


@dataclass(frozen=True, slots=True)
class Report:
    """The measurements of the client at one time of the flight."""

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
    """Versions received."""
    sent: int
    received: int
    """Bytes, from the start."""
    waiting: int
    drops: int
    memory: int
    server: dict[str, Any]


@dataclass(slots=True)
class History:
    """Everything that display, plot and summary show."""

    reports: list[Report] = field(default_factory=list)
    episodes: list[tuple[int, float]] = field(default_factory=list)
    """Step and return of each episode that ended."""
    means: list[tuple[int, float]] = field(default_factory=list)
    """Step and mean of the newest episodes, for each episode but the first few."""
    evaluation: list[float] = field(default_factory=list)
    latency: dict[str, float] = field(default_factory=dict)
    """Median and p99 of all decisions, in microseconds."""
    runtime: str = ""
    """What ran the policy in the client."""
    _recent: deque[float] = field(default_factory=lambda: deque(maxlen=RECENT))

    def add(self, message: dict[str, Any]) -> None:
        """Add one message of the client."""
        match message["kind"]:
            case "flight":
                self._add_report(message)
            case "flown":
                self.latency = message["latency"]
                self.runtime = message["runtime"]
            case "evaluated":
                self.evaluation = message["returns"]

    def _add_report(self, message: dict[str, Any]) -> None:
        for step, value in message["returns"]:
            self._recent.append(value)
            self.episodes.append((step, value))
            if len(self._recent) >= _FEWEST:
                self.means.append((step, sum(self._recent) / len(self._recent)))
        self.reports.append(
            Report(
                steps=message["steps"],
                seconds=message["seconds"],
                speed=message["speed"],
                mean_return=self.means[-1][1] if self.means else None,
                median=message["latency"]["median"],
                p99=message["latency"]["p99"],
                version=message["version"] or 0,
                versions=message["versions"],
                sent=message["sent"],
                received=message["received"],
                waiting=message["waiting"],
                drops=message["drops"],
                memory=message["memory"],
                server=message["server"],
            )
        )
