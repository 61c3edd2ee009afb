"""Runs one launch on the machine it is on, for a driver on another. What goes in and comes out is JSON."""

from __future__ import annotations

import json
import platform
import select
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rl4sys import __version__
from rl4sys.cores import usable_cores
from rl4sys.laboratory.trials.launcher import Ended, Outcome, Reported, TrialEvent, TrialLaunch
from rl4sys.laboratory.trials.trial_process import PreparedProcess, TrialProcess
from rl4sys.laboratory.trials.working_directory import WorkingDirectory
from rl4sys.run_files import OUTPUT

RUNS = "runs"
"""Where a run is made below the working directory of a trial, if it is kept in storage."""
_PREPARING = "preparing.log"
"""What a process prints below its working directory before it has an order."""
_TRAINER = "rl4sys.laboratory.trials.trial"
"""The module that the tasks of all trials need, and that takes seconds to import."""


class TrialHost:
    """The process of one trial, in a working directory of its own that is removed when the trial has ended well."""

    def __init__(self, threads: int) -> None:
        """Prepare a process of so many threads: it imports torch while the order is on its way."""
        self._threads = threads
        self._process: TrialProcess | None = None
        self._asked_to_stop = False
        self._directory: WorkingDirectory | None = WorkingDirectory()
        self._prepared: PreparedProcess | None = self._prepare(self._directory, _PREPARING)

    def start(self, order: str) -> str:
        """Start what an order says, once what was started before has ended; returns the name of this machine."""
        prepared = self._take_prepared()
        working = self._directory
        if working is None:
            working = self._directory = WorkingDirectory()
        values = json.loads(order)
        launch = values["launch"]
        self._asked_to_stop = False
        if values["is_apart"]:
            # A run is made here and moves to storage, with what was printed.
            starting = working.path / "starting"
            starting.mkdir()
            launch["directory"] = str(starting)
            if "output" in launch["values"]:
                launch["values"]["output"] = str(starting / OUTPUT)
        directory = Path(launch["directory"])
        directory.mkdir(parents=True, exist_ok=True)
        self._process = TrialProcess(
            TrialLaunch(launch["key"], launch["task"], launch["values"], directory),
            prepared or self._prepare(working, directory / OUTPUT),
        )
        return platform.node()

    def events(self, seconds: float) -> str:
        """The events since the last call; waits up to so many seconds for the first one."""
        process = self._process
        if process is None:
            raise RuntimeError("The host has no process; start one first.")
        if not process.has_closed_pipe:
            select.select([process.reports], [], [], seconds)
        # A process that it forked may keep the pipe open.
        has_ended = process.popen.poll() is not None
        found: list[TrialEvent] = list(process.read())
        # The pipe closes when the process ends, or a moment before.
        if has_ended or process.has_closed_pipe:
            ended = process.ending(asked_to_stop=self._asked_to_stop)
            process.close()
            if ended.outcome is not Outcome.FAILED:
                self._remove_files()
            elif not ended.was_killed:
                self._keep_files()
            found.append(ended)
        return json.dumps([_encode(event) for event in found])

    def stop(self) -> None:
        """Ask the process to save and end."""
        self._asked_to_stop = True
        if self._process is not None:
            self._process.popen.terminate()

    def end(self) -> None:
        """Kill the process, if it still runs, and remove its files."""
        if self._prepared is not None:
            self._prepared.end()
            self._prepared = None
        if self._process is not None and self._process.popen.poll() is None:
            self._process.popen.kill()
            self._process.popen.wait()
        self._remove_files()

    def _prepare(self, working: WorkingDirectory, output: str | Path) -> PreparedProcess:
        return PreparedProcess(
            usable_cores(),
            working.path / output,
            threads=self._threads,
            directory=working.path,
            inherited=(working.descriptor,),
            imports=(_TRAINER,),
        )

    def _take_prepared(self) -> PreparedProcess | None:
        """The process that waits for an order, unless it has served one, or has died; then nothing of it is left."""
        prepared = self._prepared
        if prepared is None or prepared.has_ended:
            # A process that was killed leaves its files.
            self.end()
            return None
        self._prepared = None
        return prepared

    def _remove_files(self) -> None:
        if self._directory is not None:
            self._directory.remove()
        self._directory = None

    def _keep_files(self) -> None:
        if self._directory is not None:
            self._directory.keep()
        self._directory = None


def describe_machine() -> str:
    """The name of this machine, and its versions, as JSON."""
    return json.dumps(
        {
            "host": platform.node(),
            "rl4sys": __version__,
            "python": platform.python_version(),
            # Importing it would take longer than all the rest.
            "torch": version("torch"),
        }
    )


def can_see(path: str) -> bool:
    """Whether a file is there on this machine."""
    return Path(path).exists()


def decode_events(text: str) -> list[TrialEvent]:
    """The events that a host returned."""
    return [_decode(values) for values in json.loads(text)]


def _encode(event: TrialEvent) -> dict[str, Any]:
    match event:
        case Reported(key, values):
            return {"key": key, "values": values}
        case Ended(key, outcome, cause, was_killed):
            return {"key": key, "outcome": outcome.value, "cause": cause, "was_killed": was_killed}


def _decode(values: Mapping[str, Any]) -> TrialEvent:
    if "values" in values:
        return Reported(values["key"], values["values"])
    return Ended(values["key"], Outcome(values["outcome"]), values["cause"], values["was_killed"])
