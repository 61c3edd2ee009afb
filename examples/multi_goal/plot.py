"""A plot for each algorithm: paths over the plane, and the values of actions at a few positions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from findings import FINENESS, PLACES, Findings
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rl4sys.environments.goals import GOALS, RADIUS, WALL

COLOURS = ("C0", "C1", "C2", "C3")


def draw(title: str, found: Findings, output: Path) -> Path:
    """Write the plot as PNG: on the left the paths, on the right values and sampled actions at three positions."""
    figure = Figure(figsize=(15, 4.4), layout="constrained")
    plane, *squares = figure.subplots(1, 1 + len(PLACES))
    _draw_plane(plane, found)
    for axes, place, q, actions in zip(squares, PLACES, found.q, found.actions, strict=True):
        _contours(axes, 1.0, q)
        axes.plot(*actions.T, ".", markersize=4, color="black", alpha=0.6)
        axes.set(title=f"Q and actions at {place[0]:g}, {place[1]:g}", xlim=(-1.05, 1.05), ylim=(-1.05, 1.05))
        axes.set_aspect("equal")
    figure.suptitle(title)
    figure.savefig(output, dpi=110)
    return output


def _draw_plane(axes: Axes, found: Findings) -> None:
    _contours(axes, WALL, found.soft_value)
    for path, goal in zip(found.paths, found.goals, strict=True):
        axes.plot(*path.T, linewidth=1, alpha=0.6, color="grey" if goal is None else COLOURS[goal])
    angle = np.linspace(0.0, 2.0 * np.pi, 60)
    for place, colour, count in zip(GOALS, COLOURS, found.counts(), strict=True):
        axes.fill(place[0] + RADIUS * np.cos(angle), place[1] + RADIUS * np.sin(angle), color=colour, alpha=0.35)
        axes.text(*place, str(count), ha="center", va="center", fontweight="bold")
    axes.set(title="paths over soft values, and arrivals", xlim=(-WALL, WALL), ylim=(-WALL, WALL))
    axes.set_aspect("equal")


def _contours(axes: Axes, reach: float, values: np.ndarray) -> None:
    axis = np.linspace(-reach, reach, FINENESS)
    axes.contourf(axis, axis, values, levels=24, cmap="Greys_r", alpha=0.45)
    axes.contour(axis, axis, values, levels=12, colors="black", linewidths=0.4, alpha=0.5)
