"""Which process trains a run, and how that ended: kept in the run as `process.json`."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from rl4sys.atomic_files import replace_file
from rl4sys.file_lock import FileLock
from rl4sys.run_files import PROCESS, read_json


@dataclass(frozen=True, slots=True)
class TrainingProcess:
    """The process that trains a run, or the last one that did."""

    host: str
    pid: int
    birth: int
    """When the machine started it, in the machine's own count: a later process with the same number differs."""
    created: float
    """When the run began, in seconds since 1970; a resumed run keeps it."""
    started: float
    """When this process began to train."""
    ended: float | None = None
    cause: str | None = None
    """What it failed of."""

    @property
    def is_alive(self) -> bool:
        """Whether it still trains; a process of another machine cannot be asked."""
        return self.ended is None and self.host == platform.node() and birth_of(self.pid) == self.birth

    def end(self, now: float, cause: str | None) -> TrainingProcess:
        """The same process after its end."""
        return replace(self, ended=now, cause=cause)

    def write(self, run: Path) -> None:
        """Keep it in the run."""
        replace_file(run / PROCESS, json.dumps(asdict(self), indent=1).encode())


def this_process(run: Path, now: float) -> TrainingProcess:
    """The process that calls, about to train a run that is new or was begun by another."""
    before = read_process(run)
    created = before.created if before is not None else now
    return TrainingProcess(platform.node(), os.getpid(), birth_of(os.getpid()) or 0, created, now)


def read_process(run: Path) -> TrainingProcess | None:
    """What was kept; nothing if the run was trained without the index, or the file is damaged."""
    try:
        return TrainingProcess(**read_json(run / PROCESS))
    except (ValueError, TypeError):
        return None


def birth_of(pid: int) -> int | None:
    """When a process of this machine was started, in clock ticks since boot; None if there is no such process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    # The name in parentheses may contain anything, also parentheses. The third field follows it.
    fields = text.rpartition(")")[2].split()
    return None if fields[0] in ("Z", "X") else int(fields[19])


def is_held(run: Path) -> bool:
    """Whether some process has the run to itself, which every process that trains it does."""
    lock = FileLock.try_acquire(run, shared=True)
    if lock is None:
        return True
    lock.release()
    return False


@contextmanager
def held(run: Path) -> Iterator[bool]:
    """Keep processes that would train a run out of it for a while; false if one is in there already."""
    lock = FileLock.try_acquire(run)
    if lock is None:
        yield False
    else:
        with lock:
            yield True
