"""A thread that does regular work on the learners of a server."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

_log = logging.getLogger(__name__)

_SECONDS = 1.0


class Housekeeping:
    """Calls a function every second until it is closed. What fails is logged and tried again."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._work = work
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="housekeeping", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread."""
        self._closed.set()
        self._thread.join()

    def _run(self) -> None:
        was_failing = False
        while not self._closed.wait(_SECONDS):
            try:
                self._work()
                was_failing = False
            except Exception:  # the server goes on without it, and says so once
                if not was_failing:
                    _log.exception("Housekeeping failed; it is tried again every second.")
                was_failing = True
