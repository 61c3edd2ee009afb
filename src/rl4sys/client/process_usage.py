"""What this process has used so far: processor time by kind of thread, memory, context switches."""

from __future__ import annotations

import resource
import threading
import time
from dataclasses import dataclass
from pathlib import Path

_TASKS = Path("/proc/self/task")
_PAGE = resource.getpagesize()
_OURS = ("rl4sys-", "channel_spin")
"""In the names of background threads: those of the client, and those that gRPC makes in Python."""


@dataclass(frozen=True, slots=True)
class ProcessUsage:
    """Totals since the process began; differences of two tell what happened between them."""

    seconds: float
    """By a monotonic clock."""
    cpu: float
    """Seconds of all threads."""
    background_cpu: float
    """Seconds of the threads of the client, and of those that were not made in Python, which gRPC has."""
    memory: int
    """Resident bytes at this moment."""
    waits: int
    """Voluntary context switches."""
    preemptions: int
    """Involuntary ones."""

    @classmethod
    def now(cls) -> ProcessUsage:
        """The usage of this process."""
        used = resource.getrusage(resource.RUSAGE_SELF)
        made_in_python = {thread.native_id: thread.name for thread in threading.enumerate()}
        background = 0.0
        for task in _TASKS.iterdir():
            name = made_in_python.get(int(task.name))
            if name is None or any(part in name for part in _OURS):
                background += _cpu_seconds(task)
        memory = int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE
        cpu = used.ru_utime + used.ru_stime
        return cls(time.monotonic(), cpu, min(background, cpu), memory, used.ru_nvcsw, used.ru_nivcsw)


def _cpu_seconds(task: Path) -> float:
    """Seconds that a thread ran; none if it has ended meanwhile."""
    try:
        return int((task / "schedstat").read_text().split()[0]) / 1e9
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
