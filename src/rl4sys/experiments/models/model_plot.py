"""Plots a report about a model: its error by steps ahead, and its calibration."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rl4sys.dynamics import LEVELS
from rl4sys.experience import Array
from rl4sys.experiments.models.model_report import ModelReport

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_model(report: ModelReport, title: str, output: Path) -> Path:
    """Write the plot as a PNG."""
    from matplotlib.figure import Figure

    panels = 1 if report.coverage is None else 2
    figure = Figure(figsize=(5.2 * panels, 4.2), layout="constrained")
    axes = figure.subplots(1, panels, squeeze=False)[0]
    figure.suptitle(f"{title}: model after {report.step:,} steps, {report.fresh_steps:,} fresh steps", fontsize=10)
    _draw_open_loop(axes[0], report)
    if report.coverage is not None:
        _draw_calibration(axes[1], report.coverage)
    for each in axes:
        each.grid(alpha=0.25)
        each.spines[["top", "right"]].set_visible(False)
    output.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(output, dpi=130)
    return output


def _draw_open_loop(axes: Axes, report: ModelReport) -> None:
    ahead = np.arange(1, len(report.open_loop) + 1)
    axes.plot(ahead, report.copy_last, "o-", color="0.6", markersize=4, label="copy the last observation")
    axes.plot(ahead, report.open_loop, "o-", color="C0", markersize=4, label="model")
    axes.set_ylim(bottom=0.0)
    axes.set_xlabel("steps ahead")
    axes.set_ylabel("error, in standard deviations")
    axes.set_title("open-loop prediction of observations", loc="left", fontsize=10)
    axes.legend(framealpha=0.85, fontsize="small")


def _draw_calibration(axes: Axes, coverage: Array) -> None:
    axes.plot([0, 1], [0, 1], "--", color="0.6", linewidth=1, label="calibrated")
    axes.plot(LEVELS, coverage, "o-", color="C0", markersize=4, label="model")
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1.02)
    axes.set_xlabel("probability of the interval")
    axes.set_ylabel("share of fresh steps inside it")
    axes.set_title("calibration, one step ahead", loc="left", fontsize=10)
    axes.legend(framealpha=0.85, fontsize="small", loc="upper left")
