"""A thread that does regular work on the learners of a server."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

_log = logging.getLogger(__name__)

_SECONDS = 1.0


class Housekeeping:
    """Calls some functions every second until it is closed. What fails is logged and tried again."""

    def __init__(self, *works: Callable[[], None]) -> None:
        self._works = works
        self._closed = threading.Event()
        self._failing: set[int] = set()
        self._thread = threading.Thread(target=self._run, name="housekeeping", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread."""
        self._closed.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._closed.wait(_SECONDS):
            for number, work in enumerate(self._works):
                self._do(number, work)

    def _do(self, number: int, work: Callable[[], None]) -> None:
        try:
            work()
            self._failing.discard(number)
        except Exception:  # the server continues without it, and says so once
            if number not in self._failing:
                _log.exception("Housekeeping failed; it is tried again every second.")
            self._failing.add(number)
