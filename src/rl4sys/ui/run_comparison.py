"""Comparisons that pages ask for, computed once for as long as their runs do not change."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rl4sys.laboratory.comparison.comparison import SHORT_NAMES, Comparison, compare
from rl4sys.laboratory.comparison.learning_curves import CurveBand, curve_band
from rl4sys.laboratory.comparison.statistics import Scores
from rl4sys.laboratory.run_index.records import RunRecord
from rl4sys.run_files import METRICS, final_metrics
from rl4sys.ui.metric_curves import MetricCurves

Chosen = Sequence[tuple[Path, RunRecord]]
_KEPT = 16
"""Comparisons in memory."""


@dataclass(frozen=True, slots=True)
class Panel:
    """One chart: a metric of the groups of one environment."""

    environment: str
    metric: str
    bands: Mapping[int, CurveBand]
    """By the number of the group."""

    def json_values(self, *, with_seeds: bool) -> dict[str, Any]:
        """What the chart draws: all groups at the same steps, null where a group has no values."""
        steps = _common_steps([band.steps for band in self.bands.values()])
        groups = []
        for number, band in self.bands.items():
            at = [_at(steps, band.steps, values) for values in (band.middle, band.low, band.high)]
            seeds = [_at(steps, band.steps, values) for values in band.single] if with_seeds else []
            groups.append({"group": number, "middle": at[0], "low": at[1], "high": at[2], "seeds": seeds})
        return {
            "environment": self.environment,
            "metric": self.metric,
            "steps": [round(step) for step in steps.tolist()],
            "groups": groups,
        }


@dataclass(frozen=True, slots=True)
class ShownComparison:
    """A comparison with its charts."""

    comparison: Comparison
    panels: tuple[Panel, ...]


class RunComparisons:
    """Compares runs, and remembers the last comparisons until a run of them changes."""

    def __init__(self, curves: MetricCurves) -> None:
        self._curves = curves
        self._known: OrderedDict[object, ShownComparison] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, chosen: Chosen, metrics: Sequence[str]) -> ShownComparison:
        """The comparison of some runs, as `rl4sys compare` computes it."""
        key = (tuple(metrics), tuple((root, record, _stamp(root / record.id)) for root, record in chosen))
        with self._lock:
            if key not in self._known:
                self._known[key] = self._compare(chosen, metrics)
                while len(self._known) > _KEPT:
                    self._known.popitem(last=False)
            self._known.move_to_end(key)
            return self._known[key]

    def _compare(self, chosen: Chosen, metrics: Sequence[str]) -> ShownComparison:
        comparison = compare(chosen, metrics, last_values=self._last_values(chosen, metrics).__getitem__)
        panels = []
        for environment in dict.fromkeys(each.environment for each in comparison.groups):
            for metric in comparison.metrics:
                bands = {
                    number: band
                    for number, each in enumerate(comparison.groups)
                    if each.environment == environment
                    and (band := curve_band([self._points(member.directory, metric) for member in each.members]))
                }
                panels.append(Panel(environment, metric, bands))
        return ShownComparison(comparison, tuple(panels))

    def _last_values(self, chosen: Chosen, metrics: Sequence[str]) -> Mapping[Path, Mapping[str, float]]:
        """The last values of the metrics that are asked for by their whole names; otherwise those of all metrics."""
        names = [SHORT_NAMES.get(name, name) for name in metrics]
        found = {
            root / record.id: {
                name: values[-1] for name in names if (values := self._curves.read(root / record.id, name).values)
            }
            for root, record in chosen
        }
        if all(any(name in values for values in found.values()) for name in names):
            return found
        return {run: final_metrics(run) for run in found}

    def _points(self, run: Path, metric: str) -> Scores:
        return self._curves.read(run, metric).points()


def _stamp(run: Path) -> tuple[int, int] | None:
    try:
        status = (run / METRICS).stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


def _common_steps(grids: Sequence[Scores]) -> Scores:
    """The steps of all groups if they are equal, and otherwise twice as many over the range of all."""
    if not grids:
        return np.array([])
    if all(np.array_equal(grid, grids[0]) for grid in grids):
        return grids[0]
    return np.linspace(min(grid[0] for grid in grids), max(grid[-1] for grid in grids), 2 * len(grids[0]))


def _at(steps: Scores, own: Scores, values: Scores) -> list[float | None]:
    inside = (steps >= own[0]) & (steps <= own[-1])
    found = np.interp(steps, own, values)
    return [float(f"{value:.6g}") if here else None for value, here in zip(found, inside, strict=True)]
