"""The process that trains a run, and how it ended: stored in the run as `process.json`."""

from __future__ import annotations

import json
import logging
import os
import platform
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from rl4sys.atomic_files import replace_file
from rl4sys.file_lock import FileLock
from rl4sys.run_files import PROCESS, read_json

_log = logging.getLogger(__name__)

HEARTBEAT = 5.0
"""Seconds between two heartbeats."""
_SILENCE = 60.0
"""Seconds without a heartbeat after which a process on another machine counts as dead."""


@dataclass(frozen=True, slots=True)
class TrainingProcess:
    """The process that trains a run, or the last one that did."""

    host: str
    pid: int
    birth: int
    """Start time in clock ticks since boot, which differs for a later process with the same number."""
    created: float
    """When the run was created, in seconds since 1970; resuming keeps it."""
    started: float
    """When this process started to train."""
    ended: float | None = None
    cause: str | None = None
    """Why it failed, if it did."""
    heard: float | None = None
    """When it last wrote that it is alive, which is all that another machine can know."""

    @property
    def is_here(self) -> bool:
        """Whether it runs, or ran, on this machine."""
        return self.host == platform.node()

    @property
    def is_alive(self) -> bool:
        """Whether it is still running; on another machine, whether it was heard a moment ago."""
        if self.ended is not None:
            return False
        if self.is_here:
            return birth_of(self.pid) == self.birth
        return self.heard is not None and time.time() - self.heard < _SILENCE

    def end(self, now: float, cause: str | None) -> TrainingProcess:
        """The same process after its end."""
        return replace(self, ended=now, cause=cause)

    def hear(self, now: float) -> TrainingProcess:
        """The same process, alive at this moment."""
        return replace(self, heard=now)

    def write(self, run: Path) -> None:
        """Store it in the run."""
        replace_file(run / PROCESS, json.dumps(asdict(self), indent=1).encode())


class Heartbeat:
    """Writes into a run, every few seconds, that its process is alive."""

    def __init__(self, process: TrainingProcess, run: Path, seconds: float = HEARTBEAT) -> None:
        self._process, self._run, self._seconds = process, run, seconds
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Stop writing; afterwards the file belongs to the caller again."""
        self._ended.set()
        self._thread.join()

    def _beat(self) -> None:
        while not self._ended.wait(self._seconds):
            try:
                self._process.hear(time.time()).write(self._run)
            except OSError as error:
                # A disk that fails is reported by the next checkpoint; other machines see an old heartbeat.
                _log.debug("No heartbeat: %s", error)


def this_process(run: Path, now: float) -> TrainingProcess:
    """The calling process, about to train a new or a resumed run."""
    before = read_process(run)
    created = before.created if before is not None else now
    return TrainingProcess(platform.node(), os.getpid(), birth_of(os.getpid()) or 0, created, now)


def read_process(run: Path) -> TrainingProcess | None:
    """The stored process; None if the run was trained without the index, or if the file is damaged."""
    try:
        return TrainingProcess(**read_json(run / PROCESS))
    except (ValueError, TypeError):
        return None


def birth_of(pid: int) -> int | None:
    """Start time of a process on this machine in clock ticks since boot; None if it does not exist."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    # The name in parentheses may contain anything, also parentheses. The third field follows it.
    fields = text.rpartition(")")[2].split()
    return None if fields[0] in ("Z", "X") else int(fields[19])


def is_held(run: Path) -> bool:
    """Whether a process holds the lock of the run, as every process that trains it does."""
    lock = FileLock.try_acquire(run, shared=True)
    if lock is None:
        return True
    lock.release()
    return False


@contextmanager
def held(run: Path) -> Iterator[bool]:
    """Hold the lock of a run, so that no process can train it meanwhile; yields false if one does already."""
    lock = FileLock.try_acquire(run)
    if lock is None:
        yield False
    else:
        with lock:
            yield True
