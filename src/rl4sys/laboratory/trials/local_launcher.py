"""Runs trials in processes on this machine, each pinned to its share of the cores."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rl4sys.cores import usable_cores
from rl4sys.laboratory.trials.launcher import Ended, Outcome, Reported, TrialEvent, TrialLaunch
from rl4sys.run_files import OUTPUT

STOPPED = 130
"""The exit code of a task that stopped on request."""
_THREAD_SETTINGS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def shares(cores: Sequence[int], jobs: int, cores_each: int | None = None) -> tuple[tuple[int, ...], ...]:
    """The cores of each of several jobs. Jobs share a core only if there are too few."""
    each = min(cores_each or max(1, len(cores) // jobs), len(cores))
    left_over = 0 if cores_each or jobs > len(cores) else len(cores) - each * jobs
    sizes = [each + (1 if job < left_over else 0) for job in range(jobs)]
    starts = [sum(sizes[:job]) for job in range(jobs)]
    return tuple(
        tuple(sorted(cores[(start + place) % len(cores)] for place in range(size)))
        for start, size in zip(starts, sizes, strict=True)
    )


class LocalLauncher:
    """Starts one process per launch. The processes end with this one, even if it is killed."""

    def __init__(self, jobs: int, cores_each: int | None = None) -> None:
        self._shares = shares(usable_cores(), jobs, cores_each)
        self._free = list(reversed(self._shares))
        self._running: dict[str, _TrialProcess] = {}
        self._selector = selectors.DefaultSelector()
        self._asked_to_stop = False

    @property
    def has_free_slot(self) -> bool:
        """Whether a share of the cores is free."""
        return bool(self._free)

    @property
    def is_busy(self) -> bool:
        """Whether any process is running."""
        return bool(self._running)

    def describe(self) -> str:
        """How many processes run at once, on how many cores each."""
        sizes = sorted({len(share) for share in self._shares})
        each = f"{sizes[0]} to {sizes[-1]} cores" if len(sizes) > 1 else f"{sizes[0]} core{'s' * (sizes[0] > 1)}"
        alone = len({core for share in self._shares for core in share}) == sum(map(len, self._shares))
        return f"{len(self._shares)} at a time on {each} each" + ("" if alone else ", some sharing a core")

    def start(self, launch: TrialLaunch) -> None:
        """Start a process on a free share of the cores."""
        process = _TrialProcess(launch, self._free.pop())
        self._running[launch.key] = process
        self._selector.register(process.reports, selectors.EVENT_READ, process)

    def events(self, seconds: float) -> Sequence[TrialEvent]:
        """What the processes reported, and which of them ended."""
        found: list[TrialEvent] = []
        for key, _ in self._selector.select(seconds):
            process: _TrialProcess = key.data
            found += process.read()
            if process.has_closed_pipe:
                self._selector.unregister(process.reports)
        for name, process in list(self._running.items()):
            if process.popen.poll() is not None:
                found += [*process.read(), process.ending(asked_to_stop=self._asked_to_stop)]
                self._release(name)
        return found

    def ask_to_stop(self) -> None:
        """Ask every process to save and end."""
        self._asked_to_stop = True
        for process in self._running.values():
            process.popen.terminate()

    def close(self) -> None:
        """Kill the processes that still run."""
        for name, process in list(self._running.items()):
            process.popen.kill()
            process.popen.wait()
            self._release(name)
        self._selector.close()

    def _release(self, name: str) -> None:
        process = self._running.pop(name)
        if process.reports in self._selector.get_map():
            self._selector.unregister(process.reports)
        process.close()
        self._free.append(process.cores)


class _TrialProcess:
    """A process that runs one launch, and the pipe it reports through."""

    def __init__(self, launch: TrialLaunch, cores: tuple[int, ...]) -> None:
        self.launch, self.cores = launch, cores
        self.has_closed_pipe = False
        self._rest = b""
        self._cause: str | None = None
        self._output = launch.directory / OUTPUT
        launch.directory.mkdir(parents=True, exist_ok=True)
        self.reports, writing_end = os.pipe()
        os.set_blocking(self.reports, False)
        environment = os.environ | dict.fromkeys(_THREAD_SETTINGS, str(len(cores)))
        try:
            # A session of its own: Ctrl-C in the terminal reaches this process alone, which passes it on once.
            with self._output.open("ab") as output, _pinned_to(cores):
                self.popen = subprocess.Popen(
                    [sys.executable, "-m", "rl4sys.laboratory.trials.worker_process", str(writing_end)],
                    stdin=subprocess.PIPE,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    pass_fds=(writing_end,),
                    start_new_session=True,
                    env=environment,
                )
        except BaseException:
            os.close(self.reports)
            raise
        finally:
            os.close(writing_end)
        self._send({"task": launch.task, "values": launch.values})

    def read(self) -> Iterator[Reported]:
        """The complete lines that have arrived."""
        while not self.has_closed_pipe:
            try:
                data = os.read(self.reports, 1 << 16)
            except BlockingIOError:
                return
            self.has_closed_pipe = not data
            *lines, self._rest = (self._rest + data).split(b"\n")
            for line in lines:
                values: dict[str, Any] = json.loads(line)
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
        return Ended(self.launch.key, Outcome.FAILED, cause)

    def close(self) -> None:
        """Close the pipes."""
        os.close(self.reports)
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
def _pinned_to(cores: Sequence[int]) -> Iterator[None]:
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
