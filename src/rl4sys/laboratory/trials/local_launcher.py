"""Runs trials in processes on this machine, each pinned to its share of the cores."""

from __future__ import annotations

import selectors
from collections.abc import Sequence

from rl4sys.cores import usable_cores
from rl4sys.laboratory.trials.launcher import TrialEvent, TrialLaunch
from rl4sys.laboratory.trials.trial_process import TrialProcess


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
        self._running: dict[str, TrialProcess] = {}
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
        cores = self._free.pop()
        process = TrialProcess.start(launch, cores, threads=len(cores))
        self._running[launch.key] = process
        self._selector.register(process.reports, selectors.EVENT_READ, process)

    def events(self, seconds: float) -> Sequence[TrialEvent]:
        """What the processes reported, and which of them ended."""
        found: list[TrialEvent] = []
        for key, _ in self._selector.select(seconds):
            process: TrialProcess = key.data
            found += process.read()
            if process.has_closed_pipe:
                self._selector.unregister(process.reports)
        for name, process in list(self._running.items()):
            if process.popen.poll() is not None:
                found += [*process.read(), process.ending(asked_to_stop=self._asked_to_stop)]
                self._release(name)
        return found

    def stop(self, key: str) -> None:
        """Ask one process to save and end."""
        self._running[key].popen.terminate()

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
