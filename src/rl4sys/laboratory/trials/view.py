"""The progress of trials: one bar for all of them and one per running trial; plain lines without a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rich.progress import TaskID

from rl4sys.experiments import Screen
from rl4sys.experiments.loggers.terminal import sparkline


@dataclass(slots=True)
class _Line:
    title: str
    total: int
    bar: TaskID | None
    evaluation: str = ""
    returns: list[float] = field(default_factory=list)


class TrialView:
    """Shows trials by their keys."""

    def __init__(self, screen: Screen, title: str, total: int, done: int = 0, noun: str = "trials") -> None:
        self._screen, self._title, self._total, self._noun = screen, title, total, noun
        self._done, self._failed = done, 0
        self._lines: dict[str, _Line] = {}
        self._whole: TaskID | None = None
        if screen.progress is not None:
            self._whole = screen.progress.add_task(title, total=total, completed=done, summary=self._count())

    def begin(self, key: str, title: str, steps: int, settings: str = "") -> None:
        """A trial of so many steps has started; settings that are too long for a title are printed once."""
        bar = None
        if self._screen.progress is not None:
            bar = self._screen.progress.add_task(f"  {title}", total=steps, summary="")
        if settings or bar is None:
            self._screen.say(f"{title}: started{f', {settings}' if settings else ''}")
        self._lines[key] = _Line(title, steps, bar)

    def update(self, key: str, values: Mapping[str, Any]) -> None:
        """Show what a trial reports: the step it resumes at, its records and its warnings."""
        match values:
            case {"warning": text}:
                self._screen.say(f"{self._lines[key].title}: warning: {text}")
            case {"record": record}:
                self._show(key, record)
            case {"step": int(step)} if step > 0:
                self._resume(key, step)

    def _resume(self, key: str, step: int) -> None:
        line = self._lines[key]
        if self._screen.progress is not None and line.bar is not None:
            self._screen.progress.update(line.bar, completed=step)
        else:
            self._screen.say(f"{line.title}: resumes at step {step:,}")

    def _show(self, key: str, record: Mapping[str, Any]) -> None:
        line, metrics = self._lines[key], record["metrics"]
        evaluation = metrics.get("evaluation/return")
        if evaluation is not None and line.bar is None:
            self._screen.say(f"{line.title}: step {record['step']:,}/{line.total:,}, evaluation {evaluation:.1f}")
        if metrics.get("rollout/return") is not None:
            line.returns.append(metrics["rollout/return"])
        if evaluation is not None:
            line.evaluation = f"  evaluation {evaluation:.1f}"
        if self._screen.progress is not None and line.bar is not None:
            speed = f"{record['timing']['steps_per_second']:,.0f} steps/s"
            latest = f"return {line.returns[-1]:.1f}" if line.returns else "return –"
            shown = f"{speed}  {latest} {sparkline(line.returns)}{line.evaluation}"
            self._screen.progress.update(line.bar, completed=record["step"], summary=shown)

    def end(self, key: str, text: str, failed: bool = False, is_over: bool = True) -> None:
        """A trial has ended; `is_over` if nothing of it is left to do later."""
        line = self._lines.pop(key)
        self._done += 1 if is_over else 0
        self._failed += 1 if failed else 0
        if self._screen.progress is not None and line.bar is not None and self._whole is not None:
            self._screen.progress.remove_task(line.bar)
            self._screen.progress.update(self._whole, completed=self._done, summary=self._count())
        self._screen.say(f"{self._done}/{self._total} {line.title}: {text}")

    def say(self, text: str) -> None:
        """Show a line about all of them."""
        self._screen.say(text)

    def _count(self) -> str:
        failed = f", {self._failed} failed" if self._failed else ""
        return f"{self._done} of {self._total} {self._noun}{failed}"
