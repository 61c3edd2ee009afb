"""Pictures of a comparison: latencies over time, and what the blocks of each rule had."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from .switchback import RuleReport

_WINDOW = 5.0
"""Seconds that one point of the curves covers."""


def draw_live(
    at: NDArray[np.float64],
    seconds: NDArray[np.float64],
    compared_from: float,
    reports: Sequence[RuleReport],
    output: Path,
) -> Path:
    """Latencies from the first second on, and the ratios of all rules."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 8), layout="constrained")
    over_time, ratios = figure.subplots(2, 1)
    edges = np.arange(0.0, at.max() + _WINDOW, _WINDOW)
    inside = [seconds[(at >= start) & (at < start + _WINDOW)] * 1e3 for start in edges]
    shown = [(start, taken) for start, taken in zip(edges, inside, strict=True) if len(taken)]
    times = [start for start, _ in shown]
    over_time.plot(times, [taken.mean() for _, taken in shown], label="mean")
    over_time.plot(times, [np.quantile(taken, 0.99) for _, taken in shown], label="p99")
    over_time.axvline(compared_from, color="black", linestyle=":", label="rules take turns from here")
    over_time.set_yscale("log")
    over_time.set_xlabel("seconds since the start")
    over_time.set_ylabel("latency (ms)")
    over_time.legend(frameon=False)
    _draw_ratios(ratios, reports)
    output.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(output, dpi=120)
    return output


def _draw_ratios(panel: object, reports: Sequence[RuleReport]) -> None:
    from matplotlib.axes import Axes
    from matplotlib.ticker import FormatStrFormatter

    assert isinstance(panel, Axes)
    positions = np.arange(len(reports))
    for shift, name, colour in ((-0.12, "mean", "tab:blue"), (0.12, "p99", "tab:orange")):
        found = [report.mean_ratio if name == "mean" else report.p99_ratio for report in reports]
        values = np.array([each.value for each in found])
        errors = np.array([[each.value - each.low for each in found], [each.high - each.value for each in found]])
        panel.errorbar(positions + shift, values, yerr=errors, fmt="o", color=colour, label=name, capsize=3)
    panel.axhline(1.0, color="black", linewidth=0.6)
    panel.set_yscale("log")
    for use in (panel.yaxis.set_major_formatter, panel.yaxis.set_minor_formatter):
        use(FormatStrFormatter("%g"))
    panel.set_xticks(positions, [report.rule for report in reports])
    panel.set_ylabel("relative to least connections")
    panel.legend(frameon=False)


def draw_simulated(title: str, found: Mapping[str, Sequence[float]], output: Path) -> Path:
    """Box plots of latencies (seconds) by rule."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 5), layout="constrained")
    panel = figure.subplots()
    panel.boxplot([np.array(values) * 1e3 for values in found.values()], whis=(1, 99), showfliers=False)
    panel.set_xticks(range(1, len(found) + 1), list(found), rotation=15)
    panel.set_yscale("log")
    panel.set_ylabel("latency (ms); whiskers: 1 and 99 %")
    panel.set_title(title)
    output.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(output, dpi=120)
    return output
