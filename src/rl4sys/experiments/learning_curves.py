"""Plots of learning curves: the mean over seeds with a confidence interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rl4sys.experience import Array
from rl4sys.experiments.config import load_experiment
from rl4sys.experiments.metrics import read_metrics
from rl4sys.experiments.run_directory import RunDirectory
from rl4sys.run_files import RETURN, TRAINING_RETURN

_RESAMPLES = 2_000
_POINTS = 200


class NothingToPlot(ValueError):
    """The runs have no records of the metric that was asked for."""


@dataclass(frozen=True, slots=True)
class Curve:
    """One metric of one run over its steps."""

    steps: Array
    values: Array


@dataclass(frozen=True, slots=True)
class Band:
    """The mean over runs that differ in their seed only, with a 95 % bootstrap interval."""

    steps: Array
    mean: Array
    low: Array
    high: Array
    runs: int


def read_curve(run: RunDirectory, metric: str) -> Curve:
    """A metric of a run; records without it are skipped."""
    pairs = [
        (record["step"], record["metrics"][metric])
        for record in read_metrics(run.metrics)
        if record["metrics"].get(metric) is not None
    ]
    steps, values = zip(*pairs, strict=True) if pairs else ((), ())
    return Curve(np.array(steps, np.float64), np.array(values, np.float64))


def band(curves: Sequence[Curve], rng: np.random.Generator) -> Band:
    """The curves on common steps, averaged; no run is extended beyond its end."""
    last = min(float(curve.steps[-1]) for curve in curves)
    first = max(float(curve.steps[0]) for curve in curves)
    steps = np.linspace(first, max(first, last), _POINTS)
    values = np.stack([np.interp(steps, curve.steps, curve.values) for curve in curves])
    draws = rng.integers(len(curves), size=(_RESAMPLES, len(curves)))
    means = values[draws].mean(axis=1)
    low, high = np.percentile(means, [2.5, 97.5], axis=0)
    return Band(steps, values.mean(axis=0), low, high, len(curves))


def marker_for(steps: Array) -> str | None:
    """A marker for a curve of one point, which has no line to see."""
    return "o" if steps[0] == steps[-1] else None


def group_by_experiment(runs: Sequence[RunDirectory]) -> Mapping[str, list[RunDirectory]]:
    """Runs whose configs differ in seed, name and place only belong together."""
    groups: dict[str, list[RunDirectory]] = {}
    labels: dict[str, str] = {}
    for run in runs:
        config = load_experiment(run.config)
        key = config.model_dump_json(exclude={"experiment"})
        if key not in labels:
            taken = sum(label.split(" (")[0] == config.name for label in labels.values())
            labels[key] = f"{config.name} ({taken + 1})" if taken else config.name
        groups.setdefault(labels[key], []).append(run)
    return groups


def plot(runs: Sequence[RunDirectory], output: Path, metric: str = RETURN) -> Path:
    """Draw a metric of some runs into a PNG; one line per experiment, shaded by its interval over seeds.

    Where no run was evaluated, returns are those of the episodes in which the policy was trained.
    """
    from matplotlib.figure import Figure

    if metric == RETURN and not any(len(read_curve(run, RETURN).steps) for run in runs):
        trained = [run for run in runs if len(read_curve(run, TRAINING_RETURN).steps)]
        metric = TRAINING_RETURN if trained else metric
    figure = Figure(figsize=(8, 4.8), layout="constrained")
    axes = figure.subplots()
    drawn = False
    for label, members in group_by_experiment(runs).items():
        curves = [curve for curve in (read_curve(run, metric) for run in members) if len(curve.steps)]
        if not curves:
            continue
        summary = band(curves, np.random.default_rng(0))
        count = f", {summary.runs} seeds" if summary.runs > 1 else ""
        marker = marker_for(summary.steps)
        (line,) = axes.plot(summary.steps, summary.mean, label=f"{label}{count}", linewidth=2, marker=marker)
        if summary.runs > 1:
            axes.fill_between(summary.steps, summary.low, summary.high, alpha=0.2, color=line.get_color(), linewidth=0)
            for curve in curves:
                axes.plot(curve.steps, curve.values, color=line.get_color(), alpha=0.25, linewidth=0.8)
        drawn = True
    if not drawn:
        raise NothingToPlot(_complaint(runs, metric))
    axes.set_xlabel("environment steps")
    axes.set_ylabel(metric)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value / 1e6:g}M" if value >= 1e6 else f"{value / 1e3:g}k")
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    output.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(output, dpi=150)
    return output


def _complaint(runs: Sequence[RunDirectory], metric: str) -> str:
    names = {name for run in runs for record in read_metrics(run.metrics) for name in record["metrics"]}
    if not names:
        return f"There is nothing to plot yet: no metrics in {', '.join(str(run.metrics) for run in runs)}."
    return f"These runs have no metric '{metric}'; they have {', '.join(sorted(names))}."
