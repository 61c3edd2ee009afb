"""Launches and what runs them: processes on this machine, or a cluster with the same interface."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Protocol

_POLL_SECONDS = 0.2
"""Seconds between two checks for a request to stop."""

Report = Callable[[Mapping[str, Any]], None]
"""Sends plain values from a task to the process that launched it."""

Task = Callable[[Mapping[str, Any], Report, Callable[[], bool]], bool]
"""Does what a launch's values say; true once it is done, false if it was asked to stop first."""


@dataclass(frozen=True, slots=True)
class TrialLaunch:
    """A task to run in a process of its own."""

    key: str
    """Its name in events; unique among the launches that run at the same time."""
    task: str
    """`module:function` of a `Task`."""
    values: Mapping[str, Any]
    """The task's input: plain values, as in JSON."""
    directory: Path
    """Where the output of the process is kept."""
    is_temporary: bool = False
    """Whether the directory is only needed until there is a run, and removed if it stays empty."""
    title: str = ""
    """Its name on the screen."""
    settings: str = ""
    """What is special about it, if that is too long for a title."""
    steps: int = 0
    """Environment steps of all its runs."""
    ranks: int = 1
    """Processes that may share its work; a launcher that runs it in one gets the same result."""


class Outcome(Enum):
    """How a task ended."""

    FINISHED = "finished"
    STOPPED = "stopped"
    """On request: the same launch resumes it later."""
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Reported:
    """A report of a task."""

    key: str
    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Ended:
    """A task has ended."""

    key: str
    outcome: Outcome
    cause: str | None = None
    """Why it failed, if it did."""
    was_killed: bool = False
    """Whether a signal ended it, and not an error of its own: it may be worth another try."""


TrialEvent = Reported | Ended


class Launcher(Protocol):
    """Runs tasks, a few at a time. Only the launcher knows where."""

    @property
    def has_free_slot(self) -> bool:
        """Whether one more task can be started now."""

    @property
    def is_busy(self) -> bool:
        """Whether any task is running."""

    def describe(self) -> str:
        """How many tasks run at once, and where."""

    def start(self, launch: TrialLaunch) -> None:
        """Start a task; there must be a free slot."""

    def events(self, seconds: float) -> Sequence[TrialEvent]:
        """The events since the last call; waits up to so many seconds for the first one."""

    def stop(self, key: str) -> None:
        """Ask one running task to save and end."""

    def ask_to_stop(self) -> None:
        """Ask all running tasks to save and end."""

    def close(self) -> None:
        """Kill the tasks that still run."""


class LaunchListener(Protocol):
    """Receives the progress of launches."""

    def started(self, launch: TrialLaunch) -> None:
        """A task was started."""

    def handle(self, event: TrialEvent) -> None:
        """A task reported something, or ended."""


def run_launches(
    launcher: Launcher, launches: Iterable[TrialLaunch | None], listener: LaunchListener, stop: Callable[[], bool]
) -> None:
    """Run all launches, each taken when a slot is free; once `stop` is true, wait for the running ones to save.

    If an exception ends this function, such as a second Ctrl-C, running tasks are killed. A launch that is None means
    that whether there is another one depends on how the running ones end.
    """
    waiting = iter(launches)
    asked_to_stop = False
    try:
        while True:
            while launcher.has_free_slot and not stop():
                launch = next(waiting, None)
                if launch is None:
                    break
                launcher.start(launch)
                listener.started(launch)
            if not launcher.is_busy:
                return
            if stop() and not asked_to_stop:
                asked_to_stop = True
                launcher.ask_to_stop()
            for event in launcher.events(_POLL_SECONDS):
                listener.handle(event)
    finally:
        launcher.close()
