"""Rules that schedule the same sequences of jobs, and what their schedules are worth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from rl4sys.environments.scheduling import (
    HEURISTICS,
    ProtocolName,
    Schedule,
    ScheduleMetrics,
    Workload,
    mean_metrics,
    measure,
    schedule_by,
)

BASELINE = "sjf"
"""The rule that all others are compared with."""
RESAMPLES = 2000


class UnsuitablePolicy(ValueError):
    """There is no such policy, or it was not trained for batch scheduling."""


@dataclass(frozen=True, slots=True)
class Rival:
    """A named rule, heuristic or learned."""

    name: str
    run: Callable[[Sequence[Workload], Callable[[], None]], list[Schedule]]
    """Schedules sequences, and calls the second argument after each."""
    learned: bool = False


@dataclass(frozen=True, slots=True)
class Score:
    """The metrics of a rule on each sequence, in the same order for all rules."""

    name: str
    measured: tuple[ScheduleMetrics, ...]
    learned: bool = False

    @property
    def slowdown(self) -> np.ndarray:
        """Mean bounded slowdown of each sequence."""
        return np.array([each.slowdown for each in self.measured])


def heuristic_rivals(protocol: ProtocolName, names: Sequence[str], keep_free: Sequence[int]) -> list[Rival]:
    """Heuristics, and by `wait` SJF with processors that are kept free for short jobs."""

    def rival(name: str, kept: int = 0) -> Rival:
        label = f"{name}, {kept} free" if kept else name

        def run(sequences: Sequence[Workload], done: Callable[[], None]) -> list[Schedule]:
            schedules = []
            for jobs in sequences:
                schedules.append(schedule_by(name, jobs, protocol, kept))
                done()
            return schedules

        return Rival(label, run)

    kept = [rival("sjf", each) for each in keep_free] if protocol == "wait" else []
    return [*map(rival, dict.fromkeys([BASELINE, *(names or HEURISTICS)])), *kept]


def compare(rivals: Sequence[Rival], sequences: Sequence[Workload], done: Callable[[], None]) -> list[Score]:
    """Every rule on every sequence; `done` is called after each sequence."""
    return [
        Score(rival.name, tuple(measure(schedule) for schedule in rival.run(sequences, done)), rival.learned)
        for rival in rivals
    ]


def summary(score: Score, baseline: Score, rng: np.random.Generator) -> dict[str, Any]:
    """Means over sequences, ratios to the baseline, and a 95 % bootstrap interval of the ratio of slowdowns."""
    mean, base = mean_metrics(score.measured), mean_metrics(baseline.measured)
    rows = rng.integers(0, len(score.measured), (RESAMPLES, len(score.measured)))
    ratios = score.slowdown[rows].mean(1) / baseline.slowdown[rows].mean(1)
    return {
        "name": score.name,
        **asdict(mean),
        "relative": {name: getattr(mean, name) / getattr(base, name) for name in ("slowdown", "wait", "wait_longest")}
        | {"utilisation": mean.utilisation / base.utilisation},
        "slowdown_interval": [float(each) for each in np.quantile(ratios, (0.025, 0.975))],
        "better_on": float(np.mean(score.slowdown < baseline.slowdown)),
    }
