"""Runs trials one after the other in this process, where a debugger and a plain traceback reach them."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence

from rl4sys.laboratory.trials.launcher import Ended, Outcome, Reported, Task, TrialEvent, TrialLaunch


class OneProcessLauncher:
    """Runs a task when its events are asked for. An error ends everything, with its traceback."""

    def __init__(self, stop: Callable[[], bool]) -> None:
        self._stop = stop
        self._waiting: TrialLaunch | None = None

    @property
    def has_free_slot(self) -> bool:
        """Whether no task is waiting to be run."""
        return self._waiting is None

    @property
    def is_busy(self) -> bool:
        """Whether a task is waiting to be run."""
        return self._waiting is not None

    def describe(self) -> str:
        """How many tasks run at once."""
        return "one after the other in this process"

    def start(self, launch: TrialLaunch) -> None:
        """Take a task, which runs when its events are asked for."""
        launch.directory.mkdir(parents=True, exist_ok=True)
        self._waiting = launch

    def events(self, seconds: float) -> Sequence[TrialEvent]:
        """Run the task; returns all its events at its end."""
        launch = self._waiting
        if launch is None:
            return ()
        module, _, function = launch.task.partition(":")
        task: Task = getattr(importlib.import_module(module), function)
        found: list[TrialEvent] = []
        # What is printed goes to the screen, so there is no file to move.
        values = {**launch.values, "output": None}
        finished = task(values, lambda values: found.append(Reported(launch.key, dict(values))), self._stop)
        self._waiting = None
        return [*found, Ended(launch.key, Outcome.FINISHED if finished else Outcome.STOPPED)]

    def stop(self, key: str) -> None:
        """Nothing: when a report is heard of, its task has ended."""

    def ask_to_stop(self) -> None:
        """Nothing: the task asks by itself."""

    def close(self) -> None:
        """Forget a task that was not run."""
        self._waiting = None
