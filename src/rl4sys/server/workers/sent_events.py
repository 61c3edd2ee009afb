"""Events of a worker on another machine, until its host asks for them."""

from __future__ import annotations

import io
import threading
from collections import deque
from collections.abc import Iterator

from rl4sys.server.workers.events import Event, read_event, write_event

_MOST_BYTES = 32 << 20
"""What may wait for the host before the worker waits, too."""
_REPLY_BYTES = 16 << 20
"""About the most in one reply."""


class SentEvents:
    """A queue with a limit. Any thread may put; the host takes."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: deque[bytes] = deque()
        self._bytes = 0

    def put(self, event: Event) -> None:
        """Add an event; waits while the host has not taken the ones before."""
        file = io.BytesIO()
        write_event(file, event)
        message = file.getvalue()
        with self._changed:
            self._changed.wait_for(lambda: self._bytes < _MOST_BYTES)
            self._waiting.append(message)
            self._bytes += len(message)
            self._changed.notify_all()

    def take(self, seconds: float) -> bytes:
        """The oldest events, one after the other; waits up to so many seconds for the first one."""
        with self._changed:
            self._changed.wait_for(lambda: bool(self._waiting), seconds)
            taken, length = [], 0
            while self._waiting and length < _REPLY_BYTES:
                taken.append(self._waiting.popleft())
                length += len(taken[-1])
            self._bytes -= length
            self._changed.notify_all()
        return b"".join(taken)


def decode_events(message: bytes) -> Iterator[Event]:
    """The events in a reply."""
    file = io.BytesIO(message)
    while (event := read_event(file)) is not None:
        yield event
