"""The driver of trials: sweeps, studies and `train --seed 1,2,3` all run their trials through it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from rl4sys.experiments import Result
from rl4sys.laboratory.formatting import format_return
from rl4sys.laboratory.trials.launcher import (
    Ended,
    Launcher,
    Outcome,
    Reported,
    TrialEvent,
    TrialLaunch,
    run_launches,
)
from rl4sys.laboratory.trials.view import TrialView
from rl4sys.run_files import OUTPUT, RESULT


@dataclass(slots=True)
class TrialState:
    """What is known about one trial while it runs and afterwards."""

    key: str
    title: str
    run: Path | None = None
    """Its run directory, once there is one."""
    output: Path | None = None
    """What its process printed."""
    outcome: Outcome | None = None
    """None until it has ended, and if it was never started."""
    cause: str | None = None
    """Why it failed, if it did."""
    alert: str | None = None
    """Which alert stopped it, if one did."""


class EndLine(NamedTuple):
    """How the end of a trial is shown."""

    text: str
    failed: bool = False
    is_over: bool = True
    """Whether nothing of it is left to do."""


def describe_end(state: TrialState) -> EndLine:
    """How a trial with one run ended, in a few words."""
    if state.outcome is Outcome.FAILED:
        return EndLine(f"failed: {state.cause}", failed=True)
    if state.outcome is Outcome.STOPPED:
        text = "stopped before it began" if state.run is None else "stopped, with a checkpoint"
        return EndLine(text if state.alert is None else f"stopped by an alert: {state.alert}", is_over=False)
    result = None if state.run is None else Result.read(state.run / RESULT)
    last, best = (None, None) if result is None else (result.evaluation, result.best)
    return EndLine(f"finished, last {format_return(last)}, best {format_return(best)}")


class TrialDriver:
    """Starts trials as slots become free, shows their progress and keeps the state of each."""

    def __init__(
        self,
        view: TrialView,
        describe: Callable[[TrialState], EndLine] = describe_end,
        after_end: Callable[[TrialState], None] = lambda state: None,
        after_start: Callable[[TrialState], None] = lambda state: None,
        on_report: Callable[[TrialState, Mapping[str, Any]], None] = lambda state, values: None,
    ) -> None:
        self._view, self._describe, self._after_end = view, describe, after_end
        self._after_start, self._on_report = after_start, on_report
        self._temporary: list[TrialState] = []
        self.states: dict[str, TrialState] = {}
        """The trials that were started, by key."""

    def run(self, launcher: Launcher, launches: Iterable[TrialLaunch | None], stop: Callable[[], bool]) -> None:
        """Run all launches; a trial that fails does not stop the others."""
        try:
            run_launches(launcher, launches, self, stop)
        finally:
            for state in self._temporary:
                _remove_empty_output(state)

    def started(self, launch: TrialLaunch) -> None:
        """Show a trial that was started."""
        state = TrialState(launch.key, launch.title, output=launch.directory / OUTPUT)
        self.states[launch.key] = state
        if launch.is_temporary:
            self._temporary.append(state)
        self._view.begin(launch.key, launch.title, launch.steps, launch.settings)
        self._after_start(state)

    def handle(self, event: TrialEvent) -> None:
        """Update the state of a trial, and show it."""
        state = self.states[event.key]
        match event:
            case Reported(_, {"alert": reason}):
                state.alert = reason
            case Reported(key, values):
                if "run" in values:
                    state.run = Path(values["run"])
                if "output" in values:
                    state.output = Path(values["output"])
                self._view.update(key, values)
                self._on_report(state, values)
            case Ended(key, outcome, cause):
                state.outcome, state.cause = outcome, cause
                # First what follows from its end, which may be part of the description.
                self._after_end(state)
                self._view.end(key, *self._describe(state))


def _remove_empty_output(state: TrialState) -> None:
    """Remove the output of a process that printed nothing, with its temporary directory if no run was made."""
    if state.output is None or not state.output.is_file() or state.output.stat().st_size > 0:
        return
    state.output.unlink()
    if state.run is None:
        state.output.parent.rmdir()
    state.output = None
