"""The lock of an episode whose record the native path writes to."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Any

from rl4sys.client.episode_record import EpisodeRecord


class RecordLock:
    """A lock that takes the record back from the native path: its holder sees every decision there."""

    __slots__ = ("_record", "locked", "path", "plain")

    def __init__(self, record: EpisodeRecord) -> None:
        self.plain = threading.Lock()
        """The lock itself, which is enough while there is no path."""
        self._record = record
        self.locked = self.plain.locked
        self.path: Any = None
        """The path that may be open; None before there is one."""

    def acquire(self) -> bool:
        """Wait for the lock."""
        self.plain.acquire()
        path = self.path
        if path is not None and (taken := path.close()) is not None:
            self._record.take_over(*taken)
        return True

    def release(self) -> None:
        """Let another thread have it."""
        self.plain.release()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.plain.release()
