"""A plot of the flight: return, versions and decision latency over environment steps."""

from __future__ import annotations

from pathlib import Path

from history import RECENT, SOLVED, History
from matplotlib.figure import Figure


def draw(history: History, output: Path) -> Path:
    """Write the plot as PNG."""
    figure = Figure(figsize=(8, 7), layout="constrained")
    top, middle, bottom = figure.subplots(3, sharex=True, height_ratios=(3, 1, 1.2))
    if history.means:
        top.plot(*zip(*history.episodes, strict=True), ".", markersize=2.5, alpha=0.25, color="C0", label="one episode")
        top.plot(*zip(*history.means, strict=True), linewidth=2, color="C0", label=f"mean of {RECENT}")
        worst = min(value for _, value in history.episodes)
        top.set_ylim(max(-600.0, worst), 330.0)
    top.axhline(SOLVED, color="grey", linestyle="--", linewidth=1, label="solved")
    top.set_ylabel("return")
    top.legend(frameon=False, loc="lower right")
    reports = history.reports
    steps = [report.steps for report in reports]
    middle.step(steps, [report.version for report in reports], where="post", color="C2")
    middle.set_ylabel("policy version")
    bottom.plot(steps, [report.median for report in reports], color="C1", label="median")
    bottom.plot(steps, [report.p99 for report in reports], color="C3", linewidth=1, label="p99")
    bottom.set_yscale("log")
    bottom.set_ylabel("decision, µs")
    bottom.set_xlabel("environment steps")
    bottom.legend(frameon=False, loc="upper left", ncols=2)
    bottom.margins(y=0.3)
    bottom.xaxis.set_major_formatter(lambda value, _: f"{value / 1e3:g}k")
    for axes in (top, middle, bottom):
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    figure.suptitle("PPO learns to land through a training server")
    figure.savefig(output, dpi=110)
    return output
