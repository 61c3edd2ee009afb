"""Starts the ranks of a run as processes on this machine, and ends all of them when one dies."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any

import typer

from rl4sys.cli.exit_codes import INTERRUPTED, RANK_LOST, STOPPED
from rl4sys.cli.output import report
from rl4sys.cores import usable_cores
from rl4sys.laboratory.trials.local_launcher import shares
from rl4sys.laboratory.trials.report_pipe import ReportReader
from rl4sys.laboratory.trials.trial_process import THREAD_SETTINGS, pinned_to

_ENDS_WITHIN = 10.0
"""Seconds after the death of a rank within which all have ended."""
_GRACE = _ENDS_WITHIN / 2
"""Seconds of these in which the others may end by themselves; a rank that still runs is then killed."""
_ENDINGS = (0, STOPPED, INTERRUPTED)
"""Exit codes of a run that ended as it should."""


class RankDied(RuntimeError):
    """A rank was killed or failed, so all have ended."""


class RankLauncher:
    """The processes of all ranks. They end with this one, even if it is killed."""

    def __init__(self, ranks: int) -> None:
        self._ranks = ranks
        self._selector = selectors.DefaultSelector()
        self._processes: list[_RankProcess] = []
        self._run: str | None = None
        self._stop_requests = 0

    def run(self, values: Mapping[str, Any]) -> None:
        """Start all ranks and wait for their end; raises `RankDied`, or `typer.Exit` with the code of rank 0."""
        try:
            with self._passing_signals():
                for rank, cores in enumerate(shares(usable_cores(), self._ranks)):
                    process = _RankProcess(rank, cores)
                    self._processes.append(process)
                    self._selector.register(process.pipe.descriptor, selectors.EVENT_READ, process)
                self._processes[0].launch(self._place(0, 0), values)
                code = self._watch(values)
        finally:
            for process in self._processes:
                process.close()
            self._selector.close()
        if code:
            raise typer.Exit(code)

    def _watch(self, values: Mapping[str, Any]) -> int:
        """Pass on what rank 0 reports until it has ended or a rank has failed; returns the exit code of the run."""
        # The others end as they should before rank 0, which draws and prints its results as long as it takes. At a
        # second request to stop, it has the grace period to end, wherever it is.
        while self._stop_requests < 2 and not any(process.ends_the_run for process in self._processes):
            for key, _ in self._selector.select(0.2):
                self._read(key.data, values)
        deadline = time.monotonic() + _GRACE
        while time.monotonic() < deadline and not all(process.has_ended for process in self._processes):
            time.sleep(0.05)
        for process in self._processes:
            self._read(process, values)
        code = self._processes[0].popen.poll()
        if code in _ENDINGS:
            return int(code or 0)
        if self._stop_requests and code in (None, -signal.SIGTERM):
            # It did not end in time, or it had not begun and had nothing to save.
            if self._run is not None:
                report(f"stopped at once; resume with: rl4sys resume {self._run}")
            return INTERRUPTED
        died = [process for process in self._processes if process.has_died]
        raise RankDied(self._explained(died or [process for process in self._processes if process.has_ended]))

    def _read(self, process: _RankProcess, values: Mapping[str, Any]) -> None:
        for found in process.read():
            self._run = found.get("run", self._run)
            if "port" in found and process.rank == 0:
                for other in self._processes[1:]:
                    other.launch(self._place(other.rank, found["port"]), values)
        if process.pipe.has_ended and process.pipe.descriptor in self._selector.get_map():
            self._selector.unregister(process.pipe.descriptor)

    def _place(self, rank: int, port: int) -> dict[str, Any]:
        return {"rank": rank, "ranks": self._ranks, "port": port, "local_rank": rank, "local_ranks": 1}

    def _explained(self, died: list[_RankProcess]) -> str:
        text = died[0].ending()
        if self._run is None or "rl4sys resume" in text:
            return text
        return f"{text} All ranks have ended; resume with: rl4sys resume {self._run}"

    @contextmanager
    def _passing_signals(self) -> Iterator[None]:
        """Pass Ctrl-C and SIGTERM on to rank 0, which saves: the ranks have sessions of their own."""

        def pass_on(number: int, frame: FrameType | None) -> None:
            self._stop_requests += 1
            if self._processes:
                self._processes[0].popen.send_signal(signal.SIGTERM)

        handlers = {number: signal.signal(number, pass_on) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)


class _RankProcess:
    """The process of one rank, and the pipe it reports through."""

    def __init__(self, rank: int, cores: tuple[int, ...]) -> None:
        self.rank = rank
        self.pipe = ReportReader()
        self._cause: str | None = None
        try:
            with pinned_to(cores):
                self.popen = subprocess.Popen(
                    [sys.executable, "-m", "rl4sys.cli.rank_process", str(self.pipe.writing_end)],
                    stdin=subprocess.PIPE,
                    stdout=None if rank == 0 else subprocess.DEVNULL,
                    pass_fds=(self.pipe.writing_end,),
                    start_new_session=True,
                    env=os.environ | dict.fromkeys(THREAD_SETTINGS, str(len(cores))),
                )
        except BaseException:
            self.pipe.close()
            raise
        finally:
            os.close(self.pipe.writing_end)

    @property
    def has_ended(self) -> bool:
        return self.popen.poll() is not None

    @property
    def ends_the_run(self) -> bool:
        """Whether it was rank 0 that has ended, or another rank that should not have."""
        return self.has_ended and (self.rank == 0 or self.popen.poll() != 0)

    @property
    def has_died(self) -> bool:
        """Whether it ended for a reason of its own, and not as it should."""
        code = self.popen.poll()
        return code is not None and code not in (*_ENDINGS, RANK_LOST)

    def launch(self, place: Mapping[str, Any], values: Mapping[str, Any]) -> None:
        """Tell it what to do."""
        assert self.popen.stdin is not None
        try:
            self.popen.stdin.write(json.dumps({"place": place, "values": values}).encode() + b"\n")
            self.popen.stdin.flush()
        except BrokenPipeError:
            # It died at once; `ending` says how.
            return

    def read(self) -> Iterator[dict[str, Any]]:
        """The reports that have arrived."""
        for found in self.pipe.read():
            self._cause = found.get("failed", self._cause)
            yield found

    def ending(self) -> str:
        """A sentence about its end."""
        if self._cause is not None:
            return self._cause if self.rank == 0 else f"Rank {self.rank} failed: {self._cause}"
        code = self.popen.poll()
        if code is not None and code < 0:
            return f"Rank {self.rank} was killed by {signal.Signals(-code).name}."
        return f"Rank {self.rank} ended with exit code {code}."

    def close(self) -> None:
        """Kill it if it still runs, and close the pipes."""
        self.popen.kill()
        self.popen.wait()
        self.pipe.close()
        if self.popen.stdin is not None:
            self.popen.stdin.close()
