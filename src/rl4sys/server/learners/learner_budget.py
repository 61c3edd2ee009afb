"""What the learners of a server take together, and what is left for another one."""

from __future__ import annotations

import os
import resource
import threading
from collections.abc import Sequence
from pathlib import Path

from rl4sys.cores import usable_cores
from rl4sys.server.call_errors import exhausted
from rl4sys.server.learners.learner_setup import LearnerSetup
from rl4sys.server.options import ServiceOptions
from rl4sys.server.workers.learner_limits import LearnerCost, Limit, TotalLimits, WorkerOptions
from rl4sys.wire import FailureReason

DESCRIPTORS = 7
"""File descriptors of the server for one learner: log, archive, pipes and process."""
_SPARE_DESCRIPTORS = 64
"""For connections, which must not be refused because of learners."""
_RETRY_MS = 60_000
_NAMES = ("weights", "replay_bytes")


class LearnerBudget:
    """The costs of all learners, compared with the limits of the server and of each token. Any thread may call it."""

    def __init__(self, options: ServiceOptions) -> None:
        self._limits, self._plugins = options.limits, options.plugins
        self._has_processes = options.workers != "threads"
        self._lock = threading.Lock()
        self._costs: dict[str, tuple[str, LearnerCost]] = {}
        """By learner, with its owner."""

    def use(self, options: ServiceOptions) -> None:
        """Compare with changed limits from now on."""
        self._limits = options.limits

    def note(self, setup: LearnerSetup, cost: LearnerCost) -> None:
        """A learner exists, and takes this much."""
        with self._lock:
            self._costs[setup.learner] = (setup.owner, cost)

    def forget(self, learner: str) -> None:
        """A learner is gone."""
        with self._lock:
            self._costs.pop(learner, None)

    def worker_options(self, setup: LearnerSetup) -> WorkerOptions:
        """What the worker of a learner is given: the limits for one learner, or what is left for it if that is less."""
        own = self._limits.per_learner
        threads = own.threads if own.threads is not None else len(usable_cores())
        limits = {
            name: Limit(float(most), f"limits.per_learner.{name}")
            for name, most in {**own.model_dump(), "threads": threads}.items()
        }
        for name in _NAMES:
            limits[name] = min(limits[name], *self._left(name, setup), key=lambda limit: limit.most)
        memory = limits["memory_bytes"] if self._has_processes else None
        return WorkerOptions(self._plugins, limits, memory, self._limits.checkpoint_seconds)

    def require_room(self, owner: str, processes: Sequence[tuple[str, int | None]], starting: int) -> None:
        """Raise RESOURCE_EXHAUSTED if memory or file descriptors do not suffice for another learner.

        `processes` are those of all learners with their owners; `starting` of them have not opened all their files.
        """
        _require_descriptors(starting)
        for whose, limits, memory in (
            ("total", self._limits.total, processes),
            ("per_token", self._limits.per_token, [each for each in processes if owner and each[0] == owner]),
        ):
            if limits.memory_bytes is None:
                continue
            used = sum(_memory(process) for _, process in memory if process is not None)
            if used >= limits.memory_bytes:
                raise exhausted(
                    FailureReason.LIMIT,
                    f"Learners use {used:,} bytes of memory; limits.{whose}.memory_bytes of this server allows "
                    f"{limits.memory_bytes:,}. Share a learner by policy_id, or let the operator remove some.",
                    _RETRY_MS,
                )

    def _left(self, name: str, setup: LearnerSetup) -> list[Limit]:
        with self._lock:
            others = [(owner, cost) for learner, (owner, cost) in self._costs.items() if learner != setup.learner]
        owned = [(owner, cost) for owner, cost in others if owner == setup.owner]
        found = []
        sums: list[tuple[str, TotalLimits, list[tuple[str, LearnerCost]]]] = [("total", self._limits.total, others)]
        if setup.owner:
            sums.append(("per_token", self._limits.per_token, owned))
        for whose, limits, costs in sums:
            most = limits.weights if name == "weights" else limits.replay_bytes
            if most is not None:
                used = sum(cost.weights if name == "weights" else cost.replay_bytes for _, cost in costs)
                found.append(Limit(float(max(0, most - used)), f"the rest of limits.{whose}.{name}"))
        return found or [Limit(float("inf"), "")]


def raise_descriptor_limit() -> None:
    """Let this process open as many files as the system allows it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _require_descriptors(starting: int) -> None:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or not os.path.isdir("/proc/self/fd"):
        return
    used = len(os.listdir("/proc/self/fd")) + DESCRIPTORS * starting
    if used + DESCRIPTORS + _SPARE_DESCRIPTORS > soft:
        raise exhausted(
            FailureReason.LIMIT,
            f"The server has {used} files open and a learner needs {DESCRIPTORS} more; it may open {soft}, of which "
            f"{_SPARE_DESCRIPTORS} are kept for connections. Let the operator raise the limit of open files "
            f"(`ulimit -n`, LimitNOFILE).",
            _RETRY_MS,
        )


def _memory(process: int) -> int:
    """Bytes of a process, with pages that it shares with others counted in parts; 0 if it is gone."""
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
