"""Tells threads and listeners that something about a learner has changed."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable


class ChangeNotice:
    """A condition variable for threads that wait, and a list of functions to call for those that must not."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._listeners: dict[int, Callable[[], None]] = {}
        self._listener_ids = itertools.count()

    def wait_for(self, is_over: Callable[[], bool], timeout: float) -> bool:
        """Wait until `is_over`, which is called after every change; false if that was not in time."""
        with self._changed:
            return self._changed.wait_for(is_over, timeout)

    def wake_waiting(self) -> None:
        """Let waiting threads check their condition again."""
        with self._changed:
            self._changed.notify_all()

    def announce(self) -> None:
        """Notify waiting threads and all listeners of a change."""
        with self._changed:
            self._changed.notify_all()
            listeners = list(self._listeners.values())
        for changed in listeners:
            changed()

    @property
    def listeners(self) -> int:
        """How many listeners there are."""
        with self._changed:
            return len(self._listeners)

    def listen(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Call `changed` after every change, from any thread, until the returned function is called."""
        with self._changed:
            key = next(self._listener_ids)
            self._listeners[key] = changed

        def end() -> None:
            with self._changed:
                del self._listeners[key]

        return end
