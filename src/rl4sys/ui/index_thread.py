"""The index of one directory of runs, used by the one thread that its database connection belongs to."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from pathlib import Path
from typing import TypeVar

from rl4sys.laboratory.run_index.index import Index, open_index

T = TypeVar("T")

_SHORTEST = 1.0
"""Seconds between two looks at the directories."""
_LARGEST_SHARE = 0.02
"""The share of its time that the thread may spend on looking at the directories."""
_LONGEST_WAIT = 5.0
"""Seconds that a page waits for the index."""


class IndexNotReady(RuntimeError):
    """The index is still being read; the page can be loaded again in a moment."""


class IndexThread:
    """Opens the index when it is first asked, keeps it up to date, and opens it again when its file was replaced."""

    def __init__(self, root: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self.root = root
        self.messages: tuple[str, ...] = ()
        """What the index reported when it was opened or last brought up to date, such as a repair."""
        self._clock = clock
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"index of {root.name}")
        self._index: Index | None = None
        self._file: int | None = None
        self._due = 0.0

    def ask(self, question: Callable[[Index], T], timeout: float = _LONGEST_WAIT) -> T:
        """The answer of a question to an index that is up to date."""
        future: Future[T] = self._thread.submit(self._answer, question)
        try:
            return future.result(timeout)
        except NotYet:
            future.cancel()
            reading = self.messages[-1] if self.messages else f"reading the index of {self.root} …"
            raise IndexNotReady(reading) from None

    def close(self) -> None:
        """Close the index and end the thread."""
        self._thread.submit(self._close)
        self._thread.shutdown()

    def _answer(self, question: Callable[[Index], T]) -> T:
        try:
            return question(self._current())
        except sqlite3.Error:
            # Damaged, or replaced by another process while it was read: opening repairs it.
            self._close()
            return question(self._current())

    def _current(self) -> Index:
        if self._index is not None and self._index.is_kept and _file_number(self._index.path) != self._file:
            self._close()
        began = self._clock()
        if self._index is None:
            self.messages = ()
            self._index = open_index(self.root, self._report)
            self._file = _file_number(self._index.path)
        elif began < self._due:
            return self._index
        else:
            self.messages = ()
            self._index.sync(self._report)
        taken = self._clock() - began
        self._due = began + max(_SHORTEST, taken / _LARGEST_SHARE)
        return self._index

    def _report(self, text: str) -> None:
        self.messages = (*self.messages, text)

    def _close(self) -> None:
        if self._index is not None:
            self._index.close()
        self._index = None


def _file_number(path: Path) -> int | None:
    try:
        return os.stat(path).st_ino
    except FileNotFoundError:
        return None
