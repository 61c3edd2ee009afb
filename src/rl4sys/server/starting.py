"""A few learners start at a time: a restarted server with hundreds must not make or restore all of them at once."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from rl4sys.cores import usable_cores


class Turns:
    """Lets so many start together; the others wait in line. A turn ends with `done`, by whatever thread."""

    def __init__(self, most: int | None = None) -> None:
        self._free = most if most is not None else len(usable_cores())
        self._lock = threading.Lock()
        self._line: deque[Callable[[], bool]] = deque()

    def ask(self, start: Callable[[], bool]) -> None:
        """Call `start` when it is its turn: now, in this thread, or later, in that of whoever is done.

        It says whether it started anything; if not, its turn is over.
        """
        with self._lock:
            if not self._free:
                self._line.append(start)
                return
            self._free -= 1
        if not start():
            self.done()

    def done(self) -> None:
        """A turn is over; the next in line has it."""
        while True:
            with self._lock:
                if not self._line:
                    self._free += 1
                    return
                start = self._line.popleft()
            if start():
                return
