"""What is measured of a system that asks for decisions."""

from __future__ import annotations

import os
import resource
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

LATEST = 20
"""Episodes at the end over which returns are averaged."""


class Limits(NamedTuple):
    """How long a system runs: so many decisions, or so many seconds if they are over first."""

    decisions: int
    seconds: float = float("inf")


@dataclass(slots=True)
class Measurement:
    """What a system noticed."""

    limits: Limits
    act: list[int] = field(default_factory=list)
    """Nanoseconds of each decision."""
    returns: list[float] = field(default_factory=list)
    late_ticks: int = 0
    seconds: float = 0.0
    client_cpu: float | None = None
    """CPU seconds of the system's own thread; None where the library's loop runs in it."""
    began: float = field(default_factory=time.perf_counter)

    @property
    def is_over(self) -> bool:
        """Whether a limit is reached."""
        return len(self.act) >= self.limits.decisions or time.perf_counter() - self.began >= self.limits.seconds

    def note_step(self, total: float, info: dict[str, Any], *, over: bool) -> None:
        """Take note of a step, and of the return of its episode if that is over."""
        self.late_ticks += info.get("late", False)
        if over:
            self.returns.append(float(info.get("result", total)))

    def values(self) -> dict[str, float | None]:
        """The columns that are the same for all peers."""
        times = np.array(self.act) / 1e3
        return {
            "decisions": len(times),
            "decisions_per_second": len(times) / self.seconds,
            "act_p50_us": float(np.quantile(times, 0.5)),
            "act_p99_us": float(np.quantile(times, 0.99)),
            "act_p999_us": float(np.quantile(times, 0.999)),
            "longest_stall_ms": float(times.max()) / 1e3,
            "late_ticks": self.late_ticks / len(times),
            "client_cpu_us": None if self.client_cpu is None else 1e6 * self.client_cpu / len(times),
            "rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            "return": float(np.mean(self.returns[-LATEST:])) if self.returns else None,
        }


def cpu_seconds(root: int) -> float:
    """CPU seconds of a process and of those that it started."""
    found: dict[int, tuple[int, float]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                # It has ended meanwhile.
                continue
            found[int(entry.name)] = int(fields[1]), (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    family = {root}
    while grown := {process for process, (parent, _) in found.items() if parent in family} - family:
        family |= grown
    return sum(seconds for process, (_, seconds) in found.items() if process in family)
