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


class PreparedProcess:
    """A process that waits for a launch, and the pipe through which it will report."""

    def __init__(
        self,
        cores: tuple[int, ...],
        output: Path,
        *,
        threads: int,
        directory: Path | None = None,
        inherited: tuple[int, ...] = (),
        imports: tuple[str, ...] = (),
    ) -> None:
        """Start it on some cores; it works in `directory`, or where this process does, with descriptors of this one.

        It prints to a file, and imports modules that its task will need.
        """
        self.cores = cores
        self.pipe = ReportReader()
        environment = os.environ | dict.fromkeys(THREAD_SETTINGS, str(threads))
        worker = (sys.executable, "-m", "rl4sys.laboratory.trials.worker_process")
        try:
            # A session of its own: Ctrl-C in the terminal reaches this process alone, which passes it on once.
            with output.open("ab") as file, pinned_to(cores):
                self.popen = subprocess.Popen(
                    [*worker, str(self.pipe.writing_end), *imports],
                    stdin=subprocess.PIPE,
                    stdout=file,
                    stderr=subprocess.STDOUT,
                    pass_fds=(self.pipe.writing_end, *inherited),
                    start_new_session=True,
                    env=environment,
                    cwd=directory,
                )
        except BaseException:
            self.pipe.close()
            raise
        finally:
            os.close(self.pipe.writing_end)

    @property
    def has_ended(self) -> bool:
        """Whether it ended before there was a launch for it."""
        return self.popen.poll() is not None

    def end(self) -> None:
        """Kill it, if it still runs, and close the pipes."""
        self.popen.kill()
        self.popen.wait()
        self.close()

    def close(self) -> None:
        """Close the pipes."""
        self.pipe.close()
        if self.popen.stdin is not None:
            self.popen.stdin.close()


class TrialProcess:
    """A process that runs one launch."""

    def __init__(self, launch: TrialLaunch, prepared: PreparedProcess) -> None:
        """Give the launch to a process; it prints to the directory of the launch from then on."""
        self.launch, self.cores, self.popen = launch, prepared.cores, prepared.popen
        self._prepared, self._pipe = prepared, prepared.pipe
        self._cause: str | None = None
        self._output = launch.directory / OUTPUT
        self._send({"task": launch.task, "values": launch.values, "output": str(self._output.absolute())})

    @classmethod
    def start(cls, launch: TrialLaunch, cores: tuple[int, ...], *, threads: int) -> TrialProcess:
        """Start a process for a launch, where this process works."""
        launch.directory.mkdir(parents=True, exist_ok=True)
        return cls(launch, PreparedProcess(cores, launch.directory / OUTPUT, threads=threads))

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
        self._prepared.close()

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
