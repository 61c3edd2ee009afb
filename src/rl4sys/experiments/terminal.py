"""The live display of a run: progress, speed, return and a small curve; plain lines where there is no terminal."""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

from rl4sys.experiments.metrics import Record

_BLOCKS = "▁▂▃▄▅▆▇█"
_WIDTH = 24


def sparkline(values: list[float], width: int = _WIDTH) -> str:
    """The last values as a row of small bars."""
    shown = values[-width:]
    if not shown:
        return ""
    low, high = min(shown), max(shown)
    scale = (len(_BLOCKS) - 1) / (high - low) if high > low else 0.0
    return "".join(_BLOCKS[round((value - low) * scale)] for value in shown)


class Terminal:
    """Shows records as they come."""

    def __init__(self, console: Console, title: str, total: int) -> None:
        self._console = console
        self._title = title
        self._total = total
        self._returns: list[float] = []
        self._progress: Progress | None = None
        self._plain_every = max(1, total // 20)
        self._next_plain = 0
        if console.is_terminal:
            self._progress = Progress(
                TextColumn("[bold]{task.description}"),
                BarColumn(bar_width=24),
                _Facts(),
                TimeRemainingColumn(),
                console=console,
            )
            self._task = self._progress.add_task(title, total=total, facts="")
            self._progress.start()

    def log(self, record: Record) -> None:
        """Show one record."""
        if "evaluation/return" in record.metrics:
            self._note_evaluation(record)
            return
        if "rollout/return" in record.metrics:
            self._returns.append(record.metrics["rollout/return"])
        speed = f"{record.timing['steps_per_second']:,.0f} steps/s"
        latest = f"return {self._returns[-1]:.1f}" if self._returns else "return –"
        if self._progress is not None:
            facts = f"{record.step:,}/{self._total:,}  {speed}  {latest}  {sparkline(self._returns)}"
            self._progress.update(self._task, completed=record.step, facts=facts)
        elif record.step >= self._next_plain or record.step >= self._total:
            self._next_plain = record.step + self._plain_every
            self._console.print(
                f"{self._title}: step {record.step:,}/{self._total:,}, {speed}, {latest}", soft_wrap=True
            )

    def _note_evaluation(self, record: Record) -> None:
        mean, deviation = record.metrics["evaluation/return"], record.metrics["evaluation/deviation"]
        text = f"{self._title}: step {record.step:,}, evaluation {mean:.1f} ± {deviation:.1f}"
        console = self._progress.console if self._progress is not None else self._console
        console.print(text, soft_wrap=True, highlight=False)

    def close(self) -> None:
        """Leave the last state on the screen."""
        if self._progress is not None:
            self._progress.stop()


class _Facts(ProgressColumn):
    """The text that the terminal keeps beside the bar."""

    def render(self, task: Task) -> Text:
        """The facts of a task."""
        return Text(str(task.fields["facts"]))
