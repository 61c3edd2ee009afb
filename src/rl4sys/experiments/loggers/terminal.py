"""The live display of runs: progress, speed, return and a small curve; plain lines where there is no terminal."""

from __future__ import annotations

import logging
import math
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.table import Column
from rich.text import Text

from rl4sys.collection import Collected
from rl4sys.experiments.callbacks import Callback
from rl4sys.experiments.metrics import MetricRecord

if TYPE_CHECKING:
    from rl4sys.experiments.run import Run

_log = logging.getLogger(__name__)

_BLOCKS = "▁▂▃▄▅▆▇█"
_WIDTH = 16
_SECONDS_BETWEEN = 1.0
"""Between two looks at a run."""
_LONGEST_PAUSE = 60.0
"""Seconds between two plain lines of a long run, where there is no terminal."""
_SPEED_SECONDS = 10.0
"""What the shown speed looks back on."""


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
                _TimeLeft(compact=True),
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


class Terminal(Callback):
    """Shows where one run is: every second or so by the clock, and at each record.

    Lines become rarer as a run becomes longer: after a minute one comes each second, after an hour each minute.
    """

    def __init__(self, screen: Screen, title: str, total: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._screen = screen
        self._title = title
        self._total = total
        self._clock = clock
        self._began, self._due = clock(), 0.0
        self._returns: list[float] = []
        self._speed = RecentSpeed()
        if screen.progress is not None:
            self._task = screen.progress.add_task(title, total=total, summary="", left="--:--")

    def log(self, record: MetricRecord) -> None:
        """Show one record."""
        if record.metrics.get("evaluation/return") is not None:
            mean, deviation = record.metrics["evaluation/return"], record.metrics["evaluation/deviation"]
            self._screen.say(f"{self._title}: step {record.step:,}, evaluation {mean:.1f} ± {deviation:.1f}")
            return
        if record.metrics.get("rollout/return") is not None:
            self._returns.append(record.metrics["rollout/return"])
        if self._screen.progress is not None or record.step >= self._total or self._clock() >= self._due:
            self._show(record.step, record.metrics)

    def on_step(self, run: Run, collected: Collected) -> str | None:
        """Show where the run is, if it is time for that."""
        if self._clock() >= self._due:
            try:
                self._show(run.steps, run.latest_metrics())
            except OSError as error:
                self._due = math.inf
                _log.warning("The progress is not shown any more: %s", error)
        return None

    def _show(self, step: int, metrics: Mapping[str, float]) -> None:
        now = self._clock()
        elapsed = now - self._began
        rate = self._speed.after(now, step)
        left = "--:--" if not rate else format_duration(max(0, self._total - step) / rate)
        speed = "– steps/s" if rate is None else f"{rate:,.0f} steps/s"
        latest = f"return {metrics['rollout/return']:.1f}" if "rollout/return" in metrics else "return –"
        loss = next((f"{name[6:]} {value:.3g}" for name, value in metrics.items() if _is_loss(name)), "")
        if self._screen.progress is not None:
            self._due = now + _SECONDS_BETWEEN
            shown = (f"{step:,}/{self._total:,}", speed, latest, loss, sparkline(self._returns))
            summary = "  ".join(part for part in shown if part)
            self._screen.progress.update(self._task, completed=step, summary=summary, left=left)
            return
        self._due = now + max(_SECONDS_BETWEEN, min(_LONGEST_PAUSE, elapsed / 60))
        parts = (f"step {step:,}/{self._total:,}", f"{left} left", speed, latest, loss)
        self._screen.say(f"{self._title}: {', '.join(part for part in parts if part)}")

    def close(self) -> None:
        """Leave the last state on the screen."""


class RecentSpeed:
    """Steps per second over the last seconds, from the steps at some moments."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()

    def after(self, now: float, step: int) -> float | None:
        """The speed with one more moment; None after the first one."""
        self._seen.append((now, step))
        while len(self._seen) > 2 and now - self._seen[0][0] > _SPEED_SECONDS:
            self._seen.popleft()
        before, steps = self._seen[0]
        return (step - steps) / (now - before) if now > before else None


def format_duration(seconds: float) -> str:
    """A duration as minutes and seconds, or with hours."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes:02}:{rest:02}"


def _is_loss(name: str) -> bool:
    return name.startswith("train/") and "loss" in name


class _Summary(ProgressColumn):
    """The text that the terminal keeps beside the bar."""

    def render(self, task: Task) -> Text:
        """The summary of a task."""
        return Text(str(task.fields["summary"]))


class _TimeLeft(TimeRemainingColumn):
    """The time left by the recent speed, or as Rich estimates it where trials only report from time to time."""

    def render(self, task: Task) -> Text:
        """The time that a task still takes."""
        return Text(str(task.fields["left"])) if "left" in task.fields else super().render(task)
