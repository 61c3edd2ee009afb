"""The lock of an episode whose record the native path writes to."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Any

from rl4sys.client.episode_record import EpisodeRecord


class RecordLock:
    """A lock that takes the record back from the native path: its holder sees every decision there."""

    __slots__ = ("_lock", "_record", "locked", "path")

    def __init__(self, record: EpisodeRecord) -> None:
        self._lock = threading.Lock()
        self._record = record
        self.locked = self._lock.locked
        self.path: Any = None
        """The path that may be open; None before there is one."""

    def acquire(self) -> bool:
        """Wait for the lock."""
        self._lock.acquire()
        path = self.path
        if path is not None and (taken := path.close()):
            self._record.take_over(taken)
        return True

    def release(self) -> None:
        """Let another thread have it."""
        self._lock.release()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()
