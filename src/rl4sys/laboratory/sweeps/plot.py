"""Plots a sweep: learning curves of its best configurations, and the score over each setting."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rl4sys.experiments import NothingToPlot
from rl4sys.experiments.learning_curves import Band, band, marker_for, read_curve
from rl4sys.laboratory.sweeps.summary import Configuration, SweepSummary
from rl4sys.laboratory.trials.names import short_names, shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_METRIC = "evaluation/return"
_BEST = 5
"""Configurations with a colour and a label; the others are grey."""
_COLUMNS = 3
_FEW = 5
"""Up to so many values are categories; more numbers are drawn to scale."""


def plot_sweep(summary: SweepSummary, output: Path) -> Path:
    """Plot a sweep into a PNG."""
    from matplotlib.figure import Figure

    ranked = [one for one in summary.configurations if one.score is not None]
    if not ranked:
        raise NothingToPlot("There is nothing to plot yet: no trial of the sweep is finished.")
    keys = list(ranked[0].changes)
    columns = min(_COLUMNS, len(keys))
    rows = -(-len(keys) // columns)
    figure = Figure(figsize=(10, 4.4 + 3.0 * rows), layout="constrained")
    grid = figure.add_gridspec(1 + rows, columns, height_ratios=[1.5, *[1] * rows])
    _draw_curves(figure.add_subplot(grid[0, :]), summary, ranked)
    names = short_names(keys)
    first: Axes | None = None
    for place, key in enumerate(keys):
        axes = figure.add_subplot(grid[1 + place // columns, place % columns], sharey=first)
        first = first or axes
        _draw_effect(axes, ranked, key, _distinct([trial.changes[key] for trial in summary.trials]))
        axes.set_xlabel(names[key])
        if place == 0:
            axes.set_title(
                "each configuration, and the mean over those with the same value", loc="left", fontsize="small"
            )
        if place % columns == 0:
            axes.set_ylabel(f"{summary.score} return")
    output.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(output, dpi=130)
    return output


def _draw_curves(axes: Axes, summary: SweepSummary, ranked: Sequence[Configuration]) -> None:
    """The best in colour, in front of the others."""
    for place, configuration in reversed(list(enumerate(ranked))):
        summed = _band_of(summary, configuration)
        if summed is None:
            continue
        marker = marker_for(summed.steps)
        if place >= _BEST:
            axes.plot(summed.steps, summed.mean, color="0.75", linewidth=0.8, marker=marker, zorder=1)
            continue
        seeds = f" ({summed.runs} seeds)" if summed.runs > 1 else ""
        text = f"{configuration.score:.1f}  {configuration.label}{seeds}"
        axes.plot(summed.steps, summed.mean, color=f"C{place}", linewidth=1.8, marker=marker, label=text, zorder=3)
        if summed.runs > 1:
            axes.fill_between(
                summed.steps, summed.low, summed.high, color=f"C{place}", alpha=0.1, linewidth=0, zorder=2
            )
    count = f"the best {_BEST} of {len(ranked)} configurations" if len(ranked) > _BEST else "all configurations"
    axes.set_title(f"{summary.name}: {count}")
    axes.set_xlabel("environment steps")
    axes.set_ylabel(_METRIC)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value / 1e6:g}M" if value >= 1e6 else f"{value / 1e3:g}k")
    _tidy(axes)
    handles, texts = axes.get_legend_handles_labels()
    # The best was drawn last, and is listed first.
    axes.legend(handles[::-1], texts[::-1], framealpha=0.85, fontsize="small", title=f"{summary.score} return")


def _draw_effect(axes: Axes, ranked: Sequence[Configuration], key: str, values: Sequence[Any]) -> None:
    """Each configuration as a point over its value of one setting, and the mean where values repeat."""
    points = [(one.changes[key], one.score) for one in ranked if one.score is not None]
    scores = [score for _, score in points]
    if _is_scale(values):
        axes.plot([value for value, _ in points], scores, "o", color="C0", alpha=0.6, markersize=4)
        if min(values) > 0 and max(values) / min(values) > 20:
            axes.set_xscale("log")
    else:
        places = [values.index(value) for value, _ in points]
        axes.plot(places, scores, "o", color="C0", alpha=0.35, markersize=4)
        means = {
            place: np.mean([score for at, score in zip(places, scores, strict=True) if at == place])
            for place in set(places)
        }
        axes.plot(sorted(means), [means[place] for place in sorted(means)], "-", color="C1", linewidth=1.8)
        axes.set_xticks(range(len(values)), [shown(value) for value in values])
        axes.set_xlim(-0.5, len(values) - 0.5)
    _tidy(axes)


def _band_of(summary: SweepSummary, configuration: Configuration) -> Band | None:
    curves = [read_curve(run, _METRIC) for run in summary.runs_of(configuration)]
    known = [curve for curve in curves if len(curve.steps)]
    return band(known, np.random.default_rng(0)) if known else None


def _distinct(values: Sequence[Any]) -> list[Any]:
    """Each value once: numbers by size, others in the order of the sweep."""
    found: list[Any] = []
    for value in values:
        if value not in found:
            found.append(value)
    return sorted(found) if all(_is_number(value) for value in found) else found


def _is_scale(values: Sequence[Any]) -> bool:
    return len(values) > _FEW and all(_is_number(value) for value in values)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _tidy(axes: Axes) -> None:
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
