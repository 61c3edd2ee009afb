"""When workers start: a few at a time, and again after a failure until that is hopeless."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from rl4sys.cores import usable_cores

_FIRST_SECONDS = 0.5
_MAX_SECONDS = 30.0


class StartQueue:
    """Limits how many learners start at once, so that a restarted server does not restore hundreds together.

    A slot is held from the call of `start` until `done`, which any thread may call.
    """

    def __init__(self, slots: int | None = None) -> None:
        """By default there are as many slots as usable cores."""
        self._free = slots if slots is not None else len(usable_cores())
        self._lock = threading.Lock()
        self._waiting: deque[Callable[[], bool]] = deque()

    def enter(self, start: Callable[[], bool]) -> None:
        """Call `start` once a slot is free: now, in this thread, or later, in the thread that calls `done`.

        `start` returns whether it started anything; if not, its slot is free again.
        """
        with self._lock:
            if not self._free:
                self._waiting.append(start)
                return
            self._free -= 1
        if not start():
            self.done()

    def done(self) -> None:
        """Give a slot to the next in the queue."""
        while True:
            with self._lock:
                if not self._waiting:
                    self._free += 1
                    return
                start = self._waiting.popleft()
            if start():
                return


class RestartBackoff:
    """Decides when a failed worker is restarted, and when to give up: failures and positions in, delays out."""

    def __init__(self, max_failures: int = 3, first_seconds: float = _FIRST_SECONDS) -> None:
        """`max_failures` in a row without progress are the last."""
        self.count = 0
        """How many times the worker was restarted."""
        self._max_failures = max_failures
        self._first_seconds = first_seconds
        self._failures = 0
        self._reached = -1
        self._reached_before = -1

    def note_progress(self, position: int) -> None:
        """The worker has folded the log up to here."""
        self._reached = max(self._reached, position)

    def after_failure(self) -> float | None:
        """Seconds to wait before the next start; None to give up.

        Only reaching a new record counts as progress: a worker that runs into the same failure again makes none.
        """
        self._failures = 1 if self._reached > self._reached_before else self._failures + 1
        self._reached_before = self._reached
        if self._failures >= self._max_failures:
            return None
        self.count += 1
        return min(_MAX_SECONDS, self._first_seconds * 2.0 ** (self._failures - 1))
