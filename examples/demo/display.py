"""The live display of a flight: a panel in a terminal, plain lines elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Self

from history import RECENT, History, Report
from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

_EIGHTHS = " ▁▂▃▄▅▆▇█"
_CHART_WIDTH, _CHART_HEIGHT = 60, 6
_PLAIN_LINES = 20
"""Lines that a whole flight prints where there is no terminal."""


class Display:
    """Shows the newest report and the curve of returns."""

    def __init__(self, console: Console, total_steps: int) -> None:
        self._console = console
        self._total = total_steps
        self._live = Live(console=console, auto_refresh=False) if console.is_terminal else None
        self._printed = -total_steps

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, history: History) -> None:
        """Show the newest report."""
        report = history.reports[-1]
        if self._live is not None:
            self._live.update(self._panel(history, report), refresh=True)
        elif report.steps >= min(self._total, self._printed + self._total // _PLAIN_LINES) > self._printed:
            self._printed = report.steps
            self._console.print(Text(_line(report)), soft_wrap=True)

    def _panel(self, history: History, report: Report) -> Panel:
        table = Table.grid(padding=(0, 2))
        table.add_column(style="bold cyan", no_wrap=True)
        table.add_column()
        table.add_row("flight", ProgressBar(self._total, min(report.steps, self._total), width=_CHART_WIDTH))
        for name, text in described(report).items():
            table.add_row(name, Text(text))
        means = [mean for _, mean in history.means]
        curve = Text("\n".join(chart(means, _CHART_WIDTH, _CHART_HEIGHT)), style="green", no_wrap=True)
        title = Text(f"mean return of {RECENT} episodes, from the first to now", style="dim")
        return Panel(Group(table, "", title, curve), title="RL4Sys: learning to land inside a live system")


def described(report: Report) -> dict[str, str]:
    """The lines of the display by name."""
    server = report.server
    learning = f", learner {server['learner']}, {server['learned']:,} steps learned" if "learner" in server else ""
    unused = (
        f", {server['unused']:,} too old to use, {server['queued']} segments waiting" if "learner" in server else ""
    )
    each = report.received / max(1, report.versions)
    return {
        "steps": f"{report.steps:,} in {report.seconds:.0f} s, {report.speed:,.0f} per second",
        "return": _number(report.mean_return),
        "policy": f"version {report.version}; {report.versions} received, {_size(each)} each",
        "decision": f"{report.median:.0f} µs (median), {report.p99:.0f} µs (p99)",
        "network": f"{_size(report.sent)} sent ({report.sent / max(1, report.steps):.0f} bytes a step), "
        f"{_size(report.received)} received",
        "client": f"{_size(report.memory)} of memory, {report.waiting} segments waiting, {report.drops} dropped",
        "server": f"{server.get('state', '–')}{learning}{unused}",
    }


def chart(values: Sequence[float], width: int, height: int) -> list[str]:
    """A bar chart of all values, with the highest and the lowest value beside it."""
    if not values:
        return [""] * height
    columns = min(width, len(values))
    edges = [number * len(values) // columns for number in range(columns + 1)]
    bars = [sum(values[a:b]) / (b - a) for a, b in pairwise(edges)]
    low, high = min(bars), max(bars)
    eighths = [round((bar - low) / ((high - low) or 1.0) * (8 * height - 1)) + 1 for bar in bars]
    rows = [
        "".join(_EIGHTHS[max(0, min(8, bar - 8 * level))] for bar in eighths).ljust(width) for level in range(height)
    ][::-1]
    rows[0] += f" {high:7.1f}"
    rows[-1] += f" {low:7.1f}"
    return rows


def _line(report: Report) -> str:
    server = report.server
    return (
        f"{report.seconds:4.0f} s  {report.steps:>8,} steps  {report.speed:6,.0f}/s  "
        f"return {_number(report.mean_return):>6}  version {report.version:>3}  "
        f"decision {report.median:.0f}/{report.p99:.0f} µs  sent {_size(report.sent)}  "
        f"received {_size(report.received)}  server {server.get('state', '–')}, learner {server.get('learner', '–')}"
    )


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f}"


def _size(count: float) -> str:
    return f"{count / 1e6:.1f} MB" if count >= 1e6 else f"{count / 1e3:.1f} KB"
