"""Plots learning curves of groups of runs: interquartile means with their intervals."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rl4sys.laboratory.comparison.groups import Group, Member
from rl4sys.laboratory.comparison.statistics import Scores, iqm_band
from rl4sys.run_files import read_records

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

_POINTS = 200
_PANEL = (6.0, 3.8)
"""Inches of one panel."""
_LEGEND = 0.25
"""Inches of one line of the legend."""


class UnknownPlotFormat(ValueError):
    """A file name without the suffix of an image format."""


def plot_curves(groups: Sequence[Group], metrics: Sequence[str], output: Path) -> Path:
    """A plot with a row per environment and a column per metric; one line per group, shaded by its interval."""
    from matplotlib.figure import Figure

    _check_suffix(output)
    environments = list(dict.fromkeys(each.environment for each in groups))
    width, height = _PANEL[0] * len(metrics), _PANEL[1] * len(environments) + _LEGEND * (1 + len(groups))
    figure = Figure(figsize=(width, height), layout="constrained")
    panels = figure.subplots(len(environments), len(metrics), squeeze=False)
    colours = {each.label: f"C{number % 10}" for number, each in enumerate(groups)}
    for row, environment in zip(panels, environments, strict=True):
        for panel, metric in zip(row, metrics, strict=True):
            for each in groups:
                if each.environment == environment:
                    _line(panel, each, metric, colours[each.label])
            _finish(panel, metric, environment)
    lines = [_key(each, colours[each.label]) for each in groups]
    title = "interquartile mean of seeds, shaded: 95 % interval"
    figure.legend(handles=lines, title=title, alignment="left", loc="outside upper left", frameon=False)
    output.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(output, dpi=150)
    return output


def _check_suffix(output: Path) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    known = FigureCanvasAgg.get_supported_filetypes()
    if output.suffix.lower().removeprefix(".") not in known:
        raise UnknownPlotFormat(f"'{output}' is not an image file; give it a name that ends in .png, .pdf or .svg.")


def curve(member: Member, metric: str) -> Scores:
    """A metric of one run as rows of step and value."""
    pairs = [
        (record["step"], record["metrics"][metric])
        for record in read_records(member.directory)
        if record["metrics"].get(metric) is not None
    ]
    return np.array(pairs, np.float64).reshape(-1, 2)


class CurveBand(NamedTuple):
    """The interquartile mean of some curves with its pointwise 95 % interval."""

    steps: Scores
    middle: Scores
    low: Scores
    high: Scores
    single: Scores
    """Each curve at the same steps [runs, points]."""


def curve_band(curves: Sequence[Scores]) -> CurveBand | None:
    """The band of curves, each as rows of step and value; None if none of them has a point."""
    present = [points for points in curves if len(points)]
    if not present:
        return None
    # Only over the steps that all runs have.
    first, last = max(points[0, 0] for points in present), min(points[-1, 0] for points in present)
    steps = np.linspace(first, max(first, last), _POINTS)
    values = np.stack([np.interp(steps, points[:, 0], points[:, 1]) for points in present])
    return CurveBand(steps, *iqm_band(values, np.random.default_rng(0)), values)


def _line(panel: Axes, each: Group, metric: str, colour: str) -> None:
    band = curve_band([curve(member, metric) for member in each.members])
    if band is None:
        return
    # A curve of one point has no line to see.
    marker = "o" if band.steps[0] == band.steps[-1] else None
    panel.plot(band.steps, band.middle, color=colour, linewidth=2, marker=marker)
    if len(band.single) > 1:
        panel.fill_between(band.steps, band.low, band.high, color=colour, alpha=0.2, linewidth=0)


def _key(each: Group, colour: str) -> Line2D:
    from matplotlib.lines import Line2D

    seeds = "1 seed" if len(each.members) == 1 else f"{len(each.members)} seeds"
    return Line2D([], [], color=colour, linewidth=2, label=f"{each.label}, {seeds}")


def _finish(panel: Axes, metric: str, environment: str) -> None:
    panel.set_title(environment, fontsize="medium")
    panel.set_xlabel("environment steps")
    panel.set_ylabel(metric)
    panel.xaxis.set_major_formatter(_in_short)
    panel.grid(alpha=0.25)
    panel.spines[["top", "right"]].set_visible(False)


def _in_short(value: float, place: Any) -> str:
    return f"{value / 1e6:g}M" if value >= 1e6 else f"{value / 1e3:g}k" if value >= 1e3 else f"{value:g}"
