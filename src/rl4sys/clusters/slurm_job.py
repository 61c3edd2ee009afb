"""One launch as a SLURM job: a directory on the shared file system with its order, its script and its reports."""

from __future__ import annotations

import json
import os
import re
import secrets
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from rl4sys.laboratory.trials.launcher import Reported, TrialLaunch
from rl4sys.run_files import OUTPUT

ORDER, REPORTS, SCRIPT, NUMBER = "order.json", "reports.jsonl", "job.sh", "job_number"
_THREAD_SETTINGS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_SCRIPT = """#!/bin/sh
{settings}
echo "job $SLURM_JOB_ID on $(hostname)"
# In place of this shell, so that the signal ahead of the time limit reaches it.
exec {python} -m rl4sys.clusters.slurm_worker {directory}
"""


class SlurmJob:
    """The directory of a job, and what its worker has reported so far."""

    def __init__(self, launch: TrialLaunch, directory: Path) -> None:
        self.launch, self.directory = launch, directory
        self.output = (directory if launch.is_temporary else launch.directory.resolve()) / OUTPUT
        self.run: Path | None = None
        self.exit_code: int | None = None
        """The code of the newest attempt, once it ended by itself."""
        self.cause: str | None = None
        self.was_stopped_by_alert = False
        self.has_progressed = False
        """Whether anything was learned since `resubmitted`."""
        self._offset = 0

    @classmethod
    def create(cls, launch: TrialLaunch, threads: int) -> SlurmJob:
        """Write order and script."""
        directory = _parent(launch) / f"{_plain(launch.key)}-{secrets.token_hex(4)}"
        directory.mkdir(parents=True)
        launch.directory.mkdir(parents=True, exist_ok=True)
        order = {"task": launch.task, "values": _for_other_machine(launch.values, threads)}
        (directory / ORDER).write_text(json.dumps(order), "utf-8")
        settings = "\n".join(f"export {name}={threads}" for name in _THREAD_SETTINGS)
        words = {"settings": settings, "python": shlex.quote(sys.executable), "directory": shlex.quote(str(directory))}
        (directory / SCRIPT).write_text(_SCRIPT.format(**words), "utf-8")
        (directory / REPORTS).touch()
        return cls(launch, directory)

    @classmethod
    def find(cls, launch: TrialLaunch) -> Iterator[SlurmJob]:
        """The jobs of the same launch that an earlier process submitted, such as one that was killed."""
        if not launch.is_temporary:
            pattern = re.compile(re.escape(_plain(launch.key)) + r"-[0-9a-f]{8}")
            for directory in sorted(_parent(launch).glob("*")):
                if pattern.fullmatch(directory.name) and (directory / NUMBER).is_file():
                    yield cls(launch, directory)

    @property
    def number(self) -> str:
        """The number that SLURM gave it."""
        return (self.directory / NUMBER).read_text("utf-8")

    def submitted(self, number: str) -> None:
        """Keep its number, also for a process that finds it later."""
        (self.directory / NUMBER).write_text(number, "utf-8")
        self.exit_code, self.has_progressed = None, False

    def read(self) -> Iterator[Reported]:
        """The reports since the last call."""
        with (self.directory / REPORTS).open("rb") as file:
            file.seek(self._offset)
            data = file.read()
        complete = data[: data.rfind(b"\n") + 1]
        self._offset += len(complete)
        for line in complete.splitlines():
            values: dict[str, Any] = json.loads(line)
            if "attempt" in values:
                self.exit_code = self.cause = None
            elif "exit" in values:
                self.exit_code = values["exit"]
            elif "failed" in values:
                self.cause = values["failed"]
            else:
                self._note(values)
                yield Reported(self.launch.key, values)

    def remove(self) -> Reported | None:
        """Move the output into the run, and remove the directory; returns the new place of the output, if it moved."""
        moved = None
        if self.run is not None and self.launch.is_temporary and self.output.is_file():
            target = self.run / OUTPUT
            shutil.move(self.output, target)
            moved = Reported(self.launch.key, {"output": str(target)})
        if self.launch.is_temporary:
            with suppress(OSError):
                self.launch.directory.rmdir()
        if self.run is not None or self.exit_code == 0:
            shutil.rmtree(self.directory, ignore_errors=True)
        return moved

    def _note(self, values: Mapping[str, Any]) -> None:
        if "run" in values:
            self.run = Path(values["run"])
        self.was_stopped_by_alert |= "alert" in values
        self.has_progressed |= "record" in values


class ReportFile:
    """Where the worker of a job reports: lines of JSON that are only ever added."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / REPORTS
        self._end_torn_line()

    def report(self, values: Mapping[str, Any]) -> None:
        """Add one report, in one write."""
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND)
        try:
            os.write(descriptor, json.dumps(values).encode() + b"\n")
        finally:
            os.close(descriptor)

    def run_of_earlier_attempt(self) -> str | None:
        """The run that an attempt before this one began."""
        reported = (json.loads(line) for line in self._path.read_bytes().splitlines())
        return next((values["run"] for values in reported if "run" in values), None)

    def _end_torn_line(self) -> None:
        """Remove half a line that an attempt left when it was killed."""
        data = self._path.read_bytes()
        if not data.endswith(b"\n"):
            os.truncate(self._path, data.rfind(b"\n") + 1)


def _parent(launch: TrialLaunch) -> Path:
    return launch.directory.resolve().parent / ".slurm"


def _plain(key: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.=-]+", "_", key)[:80]


def _for_other_machine(values: Any, threads: int) -> Any:
    """The values with absolute paths and a number of threads: the job runs in a directory of its own."""
    if isinstance(values, list | tuple):
        return [_for_other_machine(value, threads) for value in values]
    if not isinstance(values, Mapping):
        return values
    changed = {key: _for_other_machine(value, threads) for key, value in values.items()}
    experiment = changed.get("experiment")
    if isinstance(experiment, dict) and "directory" in experiment:
        experiment["directory"] = str(Path(experiment["directory"]).resolve())
        experiment["threads"] = experiment.get("threads") or threads
    if "is_elsewhere" in changed:
        # SLURM writes the output; the process that launched the job keeps the index of runs.
        changed |= {"is_elsewhere": True, "output": None}
    return changed
