"""The process of one trial, as the process that launched it sees it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rl4sys.laboratory.trials.launcher import Ended, Outcome, Reported, TrialLaunch
from rl4sys.laboratory.trials.report_pipe import ReportReader
from rl4sys.run_files import OUTPUT

STOPPED = 130
"""The exit code of a task that stopped on request."""
THREAD_SETTINGS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class TrialProcess:
    """A process that runs one launch, and the pipe it reports through."""

    def __init__(
        self,
        launch: TrialLaunch,
        cores: tuple[int, ...],
        *,
        threads: int,
        directory: Path | None = None,
        inherited: tuple[int, ...] = (),
    ) -> None:
        """Start it on some cores; it works in `directory`, or where this process does, with descriptors of this one."""
        self.launch, self.cores = launch, cores
        self._pipe = ReportReader()
        self._cause: str | None = None
        self._output = launch.directory / OUTPUT
        launch.directory.mkdir(parents=True, exist_ok=True)
        environment = os.environ | dict.fromkeys(THREAD_SETTINGS, str(threads))
        try:
            # A session of its own: Ctrl-C in the terminal reaches this process alone, which passes it on once.
            with self._output.open("ab") as output, pinned_to(cores):
                self.popen = subprocess.Popen(
                    [sys.executable, "-m", "rl4sys.laboratory.trials.worker_process", str(self._pipe.writing_end)],
                    stdin=subprocess.PIPE,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    pass_fds=(self._pipe.writing_end, *inherited),
                    start_new_session=True,
                    env=environment,
                    cwd=directory,
                )
        except BaseException:
            self._pipe.close()
            raise
        finally:
            os.close(self._pipe.writing_end)
        self._send({"task": launch.task, "values": launch.values})

    @property
    def reports(self) -> int:
        """The descriptor of the pipe, to wait for reports."""
        return self._pipe.descriptor

    @property
    def has_closed_pipe(self) -> bool:
        """Whether no further reports can come."""
        return self._pipe.has_ended

    def read(self) -> Iterator[Reported]:
        """The reports that have arrived."""
        for values in self._pipe.read():
            if "failed" in values:
                self._cause = values["failed"]
                continue
            if "output" in values:
                # The task has moved the file into its run.
                self._output = Path(values["output"])
            yield Reported(self.launch.key, values)

    def ending(self, *, asked_to_stop: bool) -> Ended:
        """How the process ended."""
        code = self.popen.wait()
        if code == 0:
            return Ended(self.launch.key, Outcome.FINISHED)
        # A process that SIGTERM ended during its start had nothing to save.
        if code == STOPPED or (asked_to_stop and code == -signal.SIGTERM):
            return Ended(self.launch.key, Outcome.STOPPED)
        how = f"it was killed by {signal.Signals(-code).name}" if code < 0 else f"it ended with exit code {code}"
        cause = self._cause or f"{how}; its output is in {self._output}"
        return Ended(self.launch.key, Outcome.FAILED, cause, was_killed=code < 0)

    def close(self) -> None:
        """Close the pipes."""
        self._pipe.close()
        if self.popen.stdin is not None:
            self.popen.stdin.close()

    def _send(self, launch: dict[str, Any]) -> None:
        stdin = self.popen.stdin
        assert stdin is not None
        try:
            stdin.write(json.dumps(launch).encode() + b"\n")
            stdin.flush()
        except BrokenPipeError:
            # It died at once; `ending` reports why.
            return


@contextmanager
def pinned_to(cores: Sequence[int]) -> Iterator[None]:
    """Pin this process for a moment: a process that it starts meanwhile inherits the cores."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
