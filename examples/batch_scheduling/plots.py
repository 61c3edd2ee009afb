"""Plots of a comparison: slowdowns of all rules, and two schedules of one sequence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import PatchCollection
from matplotlib.colors import Colormap, LogNorm
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.pyplot import get_cmap

from rl4sys.environments.scheduling import Schedule, measure

from .comparison import Score

_WINDOW = 20
"""Sequences of a moving median."""
LEARNED, HEURISTIC = "tab:orange", "tab:blue"


def draw_slowdowns(title: str, scores: Sequence[Score], path: Path) -> None:
    """A box for each rule: quartiles over sequences, whiskers from 5 to 95 %, and the mean as a diamond."""
    ordered = sorted(scores, key=lambda score: score.slowdown.mean(), reverse=True)
    figure = Figure(figsize=(8.0, 1.2 + 0.4 * len(ordered)), layout="constrained")
    axes = figure.subplots()
    boxes = axes.boxplot(
        [score.slowdown for score in ordered],
        orientation="horizontal",
        whis=(5, 95),
        showfliers=False,
        showmeans=True,
        patch_artist=True,
        medianprops={"color": "black"},
        meanprops={"marker": "D", "markerfacecolor": "white", "markeredgecolor": "black", "markersize": 5},
    )
    for box, score in zip(boxes["boxes"], ordered, strict=True):
        box.set(facecolor=LEARNED if score.learned else HEURISTIC, alpha=0.6)
    axes.set_yticks(range(1, len(ordered) + 1), [score.name for score in ordered])
    axes.set(xscale="log", xlabel="mean bounded slowdown of a sequence (lower is better; ◇ mean)", title=title)
    axes.grid(axis="x", which="both", alpha=0.3)
    figure.savefig(path, dpi=120)


def draw_gantt(upper: tuple[str, Schedule], lower: tuple[str, Schedule], path: Path) -> None:
    """Two schedules of the same jobs: time to the right, processors upwards, the colour is the time waited."""
    figure = Figure(figsize=(12.0, 7.0), layout="constrained")
    rows = figure.subplots(2, 1, sharex=True, sharey=True)
    longest = max(float(schedule.wait.max()) for _, schedule in (upper, lower))
    norm, colours = LogNorm(1.0, max(longest / 60, 10.0)), get_cmap("viridis_r")
    for axes, (name, schedule) in zip(rows, (upper, lower), strict=True):
        _draw_jobs(axes, schedule, norm, colours)
        found = measure(schedule)
        axes.set_title(
            f"{name}: slowdown {found.slowdown:,.2f}, mean wait {found.wait / 3600:,.2f} h, "
            f"longest {found.wait_longest / 3600:,.1f} h, utilisation {found.utilisation:.3f}"
        )
        axes.set_ylabel("processors")
    rows[1].set_xlabel("hours since the first submission")
    figure.colorbar(ScalarMappable(norm, colours), ax=rows, label="minutes waited", extend="min")
    figure.savefig(path, dpi=120)


def _draw_jobs(axes: Axes, schedule: Schedule, norm: LogNorm, colours: Colormap) -> None:
    boxes, waited = [], []
    first = float(schedule.jobs.submit[0])
    for job, (low, count) in placed(schedule):
        start, length = (schedule.start[job] - first) / 3600, schedule.jobs.run[job] / 3600
        boxes.append(Rectangle((start, low), length, count))
        waited.append(max(float(schedule.wait[job]) / 60, 1.0))
    drawn = PatchCollection(boxes, norm=norm, cmap=colours, edgecolor="white", linewidth=0.3)
    drawn.set_array(np.array(waited))
    axes.add_collection(drawn)
    end = float((schedule.start + schedule.jobs.run).max() - first) / 3600
    axes.set(xlim=(0.0, max(end, axes.get_xlim()[1])), ylim=(0, schedule.jobs.processors))


def draw_live(relative: Mapping[str, Sequence[float]], path: Path) -> None:
    """Slowdowns of each client's sequences relative to SJF, in the order they ended; lines are moving medians."""
    figure = Figure(figsize=(8.0, 4.5), layout="constrained")
    axes = figure.subplots()
    for number, (name, values) in enumerate(relative.items()):
        colour = f"C{number}"
        axes.plot(range(1, len(values) + 1), values, ".", color=colour, alpha=0.25)
        medians = [float(np.median(values[max(0, end - _WINDOW) : end])) for end in range(1, len(values) + 1)]
        axes.plot(range(1, len(values) + 1), medians, color=colour, label=name)
    axes.axhline(1.0, color="black", linewidth=0.6)
    axes.set(yscale="log", xlabel="sequences", ylabel="slowdown relative to sjf")
    axes.legend(title=f"median of {_WINDOW}", frameon=False)
    figure.savefig(path, dpi=120)


def placed(schedule: Schedule) -> list[tuple[int, tuple[int, int]]]:
    """(job, (first processor, count)) on the lowest free processors; a job may be in several pieces."""
    jobs = schedule.jobs
    busy_until = np.full(jobs.processors, -np.inf)
    pieces = []
    for job in np.argsort(schedule.start, kind="stable"):
        mine = np.flatnonzero(busy_until <= schedule.start[job])[: jobs.needed[job]]
        busy_until[mine] = schedule.start[job] + jobs.run[job]
        parts = np.split(mine, np.flatnonzero(np.diff(mine) > 1) + 1)
        pieces.extend((int(job), (int(part[0]), len(part))) for part in parts)
    return pieces
