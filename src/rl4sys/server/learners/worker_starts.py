"""When workers start: a few at a time, and again after a failure."""

from __future__ import annotations

import random
import threading
from collections import deque
from collections.abc import Callable

from rl4sys.cores import usable_cores
from rl4sys.server.workers.events import Failed

_FIRST_SECONDS = 0.5
_MAX_SECONDS = 30.0
_MAX_DOUBLINGS = 30
_FORGET_SECONDS = 300.0
"""A worker that runs for so long after a failure has left it behind."""


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
    """Decides when a failed worker is restarted, and when to give up: failures in, delays out.

    Only the learner's own code can make it give up: an exception at the same record, several times in a row. A worker
    that was killed, or could not be started, may well run the next time, and is restarted without end.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        first_seconds: float = _FIRST_SECONDS,
        max_failures: int = 3,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        """`jitter` gives numbers from 0 to 1: delays are up to a quarter shorter or longer than the nominal ones."""
        self.count = 0
        """How many times the worker was restarted."""
        self._clock, self._first_seconds = clock, first_seconds
        self._max_failures, self._jitter = max_failures, jitter
        self.reset()

    def reset(self) -> None:
        """Forget all failures, because an operator repaired their cause."""
        self._failures = 0
        """Recent ones without progress; the delay grows with them."""
        self._own_failures = 0
        self._own_position = -1
        self._failed_at: float | None = None
        self._reached = self._reached_before = -1

    def note_progress(self, position: int) -> None:
        """The worker has folded the log up to here."""
        self._reached = max(self._reached, position)

    def after_failure(self, failure: Failed) -> float | None:
        """Seconds to wait before the next start; None to give up.

        Only reaching a new record counts as progress: a worker that runs into the same failure again makes none.
        Failures are forgotten with time.
        """
        now = self._clock()
        is_old = self._failed_at is not None and now - self._failed_at > _FORGET_SECONDS
        self.note_progress(failure.position)
        self._failures = 1 if is_old or self._reached > self._reached_before else self._failures + 1
        self._reached_before, self._failed_at = self._reached, now
        if failure.is_own:
            is_same = failure.position == self._own_position and not is_old
            self._own_failures = self._own_failures + 1 if is_same else 1
            self._own_position = failure.position
            if self._own_failures >= self._max_failures:
                return None
        self.count += 1
        nominal = min(_MAX_SECONDS, self._first_seconds * 2.0 ** min(self._failures - 1, _MAX_DOUBLINGS))
        return nominal * (0.75 + 0.5 * self._jitter())
