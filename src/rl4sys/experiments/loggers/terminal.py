"""The live display of runs: progress, speed, return and a small curve; plain lines where there is no terminal."""

from __future__ import annotations

import math
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.table import Column
from rich.text import Text

from rl4sys.experiments.metrics import MetricRecord

_BLOCKS = "▁▂▃▄▅▆▇█"
_WIDTH = 16
_PLAIN_LINES = 20
"""Lines that a whole run prints where there is no terminal."""


def sparkline(values: list[float], width: int = _WIDTH) -> str:
    """The last values as a row of small bars."""
    shown = [value for value in values[-width:] if math.isfinite(value)]
    if not shown:
        return ""
    low, high = min(shown), max(shown)
    scale = (len(_BLOCKS) - 1) / (high - low) if high > low else 0.0
    return "".join(_BLOCKS[round((value - low) * scale)] for value in shown)


class Screen:
    """The part of a terminal that one or more runs share, one line each."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.progress: Progress | None = None
        """Where there is a terminal."""
        if console.is_terminal:
            self.progress = Progress(
                TextColumn("{task.description}", style="bold", markup=False, table_column=Column(no_wrap=True)),
                BarColumn(bar_width=12),
                _Summary(table_column=Column(no_wrap=True, overflow="ellipsis")),
                TimeRemainingColumn(compact=True),
                console=console,
            )

    def __enter__(self) -> Self:
        if self.progress is not None:
            self.progress.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self.progress is not None:
            self.progress.stop()

    def say(self, text: str) -> None:
        """A line of its own, above what is live."""
        self.console.print(Text(text), soft_wrap=True)


class Terminal:
    """Shows the records of one run as they come."""

    def __init__(self, screen: Screen, title: str, total: int) -> None:
        self._screen = screen
        self._title = title
        self._total = total
        self._returns: list[float] = []
        self._next_line = 0
        if screen.progress is not None:
            self._task = screen.progress.add_task(title, total=total, summary="")

    def log(self, record: MetricRecord) -> None:
        """Show one record."""
        if record.metrics.get("evaluation/return") is not None:
            mean, deviation = record.metrics["evaluation/return"], record.metrics["evaluation/deviation"]
            self._screen.say(f"{self._title}: step {record.step:,}, evaluation {mean:.1f} ± {deviation:.1f}")
            return
        if record.metrics.get("rollout/return") is not None:
            self._returns.append(record.metrics["rollout/return"])
        speed = f"{record.timing['steps_per_second']:,.0f} steps/s"
        latest = f"return {self._returns[-1]:.1f}" if self._returns else "return –"
        if self._screen.progress is not None:
            summary = f"{record.step:,} steps  {speed}  {latest}  {sparkline(self._returns)}"
            self._screen.progress.update(self._task, completed=record.step, summary=summary)
        elif record.step >= min(self._next_line, self._total):
            self._next_line = record.step + max(1, self._total // _PLAIN_LINES)
            self._screen.say(f"{self._title}: step {record.step:,}/{self._total:,}, {speed}, {latest}")

    def close(self) -> None:
        """Leave the last state on the screen."""


class _Summary(ProgressColumn):
    """The text that the terminal keeps beside the bar."""

    def render(self, task: Task) -> Text:
        """The summary of a task."""
        return Text(str(task.fields["summary"]))
