"""Carries out orders in processes of this machine, each pinned to its share of the cores."""

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
from rl4sys.laboratory.trials.launcher import Ended, News, Order, Outcome, Reported
from rl4sys.run_files import OUTPUT

STOPPED = 130
"""The exit code of a task that was asked to stop, and did."""
_THREAD_SETTINGS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def shares(cores: Sequence[int], jobs: int, cores_each: int | None = None) -> tuple[tuple[int, ...], ...]:
    """Which cores each of several jobs keeps to. Only when there are too few do jobs share one."""
    each = min(cores_each or max(1, len(cores) // jobs), len(cores))
    left_over = 0 if cores_each or jobs > len(cores) else len(cores) - each * jobs
    sizes = [each + (1 if job < left_over else 0) for job in range(jobs)]
    starts = [sum(sizes[:job]) for job in range(jobs)]
    return tuple(
        tuple(sorted(cores[(start + place) % len(cores)] for place in range(size)))
        for start, size in zip(starts, sizes, strict=True)
    )


class LocalLauncher:
    """One process for each order. It ends with this one, whatever ends this one."""

    def __init__(self, jobs: int, cores_each: int | None = None) -> None:
        self._shares = shares(usable_cores(), jobs, cores_each)
        self._free = list(reversed(self._shares))
        self._working: dict[str, _Worker] = {}
        self._selector = selectors.DefaultSelector()
        self._asked_to_stop = False

    @property
    def has_room(self) -> bool:
        """Whether a share of the cores is free."""
        return bool(self._free)

    @property
    def is_busy(self) -> bool:
        """Whether any process is at work."""
        return bool(self._working)

    def describe(self) -> str:
        """How many processes work at once, on how many cores each."""
        sizes = sorted({len(share) for share in self._shares})
        each = f"{sizes[0]} to {sizes[-1]} cores" if len(sizes) > 1 else f"{sizes[0]} core{'s' * (sizes[0] > 1)}"
        alone = len({core for share in self._shares for core in share}) == sum(map(len, self._shares))
        return f"{len(self._shares)} at a time on {each} each" + ("" if alone else ", some sharing a core")

    def start(self, order: Order) -> None:
        """Begin with an order, on a share of the cores that is free."""
        worker = _Worker(order, self._free.pop())
        self._working[order.key] = worker
        self._selector.register(worker.reports, selectors.EVENT_READ, worker)

    def news(self, seconds: float) -> Sequence[News]:
        """What the processes told, and which of them ended."""
        found: list[News] = []
        for key, _ in self._selector.select(seconds):
            worker: _Worker = key.data
            found += worker.read()
            if worker.is_silent:
                self._selector.unregister(worker.reports)
        for name, worker in list(self._working.items()):
            if worker.process.poll() is not None:
                found += [*worker.read(), worker.ending(asked_to_stop=self._asked_to_stop)]
                self._let_go(name)
        return found

    def ask_to_stop(self) -> None:
        """Ask every process to save and end."""
        self._asked_to_stop = True
        for worker in self._working.values():
            worker.process.terminate()

    def close(self) -> None:
        """Kill what is still at work."""
        for name, worker in list(self._working.items()):
            worker.process.kill()
            worker.process.wait()
            self._let_go(name)
        self._selector.close()

    def _let_go(self, name: str) -> None:
        worker = self._working.pop(name)
        if worker.reports in self._selector.get_map():
            self._selector.unregister(worker.reports)
        worker.close()
        self._free.append(worker.cores)


class _Worker:
    """A process that works on one order, and the pipe that it reports through."""

    def __init__(self, order: Order, cores: tuple[int, ...]) -> None:
        self.order, self.cores = order, cores
        self.is_silent = False
        self._rest = b""
        self._cause: str | None = None
        self._output = order.directory / OUTPUT
        order.directory.mkdir(parents=True, exist_ok=True)
        self.reports, writing_end = os.pipe()
        os.set_blocking(self.reports, False)
        environment = os.environ | dict.fromkeys(_THREAD_SETTINGS, str(len(cores)))
        try:
            # A session of its own: Ctrl-C in the terminal is for this process, which passes it on once.
            with self._output.open("ab") as output, _pinned_to(cores):
                self.process = subprocess.Popen(
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
        self._hand_over({"task": order.task, "values": order.values})

    def read(self) -> Iterator[Reported]:
        """All whole lines that have come."""
        while not self.is_silent:
            try:
                data = os.read(self.reports, 1 << 16)
            except BlockingIOError:
                return
            self.is_silent = not data
            *lines, self._rest = (self._rest + data).split(b"\n")
            for line in lines:
                facts: dict[str, Any] = json.loads(line)
                if "failed" in facts:
                    self._cause = facts["failed"]
                    continue
                if "output" in facts:
                    # The task has moved it to where it belongs.
                    self._output = Path(facts["output"])
                yield Reported(self.order.key, facts)

    def ending(self, *, asked_to_stop: bool) -> Ended:
        """How the process ended."""
        code = self.process.wait()
        if code == 0:
            return Ended(self.order.key, Outcome.FINISHED)
        # One that was asked to stop while it still started has nothing to save.
        if code == STOPPED or (asked_to_stop and code == -signal.SIGTERM):
            return Ended(self.order.key, Outcome.STOPPED)
        how = f"it was killed by {signal.Signals(-code).name}" if code < 0 else f"it ended with exit code {code}"
        cause = self._cause or f"{how}; what it printed is in {self._output}"
        return Ended(self.order.key, Outcome.FAILED, cause)

    def close(self) -> None:
        """Let go of the pipes."""
        os.close(self.reports)
        if self.process.stdin is not None:
            self.process.stdin.close()

    def _hand_over(self, order: dict[str, Any]) -> None:
        stdin = self.process.stdin
        assert stdin is not None
        try:
            stdin.write(json.dumps(order).encode() + b"\n")
            stdin.flush()
        except BrokenPipeError:
            # It died at once; how, `ending` tells.
            return


@contextmanager
def _pinned_to(cores: Sequence[int]) -> Iterator[None]:
    """What is started meanwhile inherits these cores, from its first instruction on."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
