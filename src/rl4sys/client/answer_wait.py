"""Whether to ask the server for a decision, so that one that is away costs few decisions their deadline."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from rl4sys.client.retries import Backoff

_log = logging.getLogger(__name__)


class AnswerWait:
    """Asks all the time while the server answers, and after a pause once it did not. Thread-safe."""

    def __init__(self, backoff: Backoff, clock: Callable[[], float], timeout: float) -> None:
        """`timeout` is the deadline of one question, in seconds."""
        self._backoff, self._clock, self._timeout = backoff, clock, timeout
        self._lock = threading.Lock()
        self._not_before: float | None = None
        """When to ask next; None while the server answers."""

    def may_ask(self) -> bool:
        """Whether to ask now. After a pause one thread asks, and the others wait for what it finds."""
        if self._not_before is None:
            return True
        with self._lock:
            now = self._clock()
            if self._not_before is None or now < self._not_before:
                return self._not_before is None
            self._not_before = now + 2.0 * self._timeout
            return True

    def answered(self) -> None:
        """Note an answer."""
        if self._not_before is None:
            return
        with self._lock:
            self._not_before = None
            self._backoff.succeeded()
        _log.info("The server decides again.")

    def failed(self, problem: str, asked: float = 0.0) -> None:
        """Note that there was none; `asked` is the pause in seconds that the server asked for."""
        with self._lock:
            is_new = self._not_before is None
            self._not_before = self._clock() + self._backoff.failed(asked)
        if is_new:
            _log.warning("The server does not decide: %s The fallback decides until it answers.", problem)
