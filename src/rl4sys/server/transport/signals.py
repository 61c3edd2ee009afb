"""Signals of a server process: SIGTERM and SIGINT ask it to stop, SIGHUP to read its files again."""

from __future__ import annotations

import os
import select
import signal
from types import FrameType
from typing import Any

_STOP = (signal.SIGTERM, signal.SIGINT)


class ServerSignals:
    """Receives signals within the `with` block, for the main thread."""

    def __init__(self) -> None:
        self._stops = 0
        self._reload = False

    def __enter__(self) -> ServerSignals:
        # The kernel may deliver a signal to a thread of a library, which does not wake the main one: a pipe does.
        self._reading, self._writing = os.pipe()
        for end in (self._reading, self._writing):
            os.set_blocking(end, False)
        self._wakeup = signal.set_wakeup_fd(self._writing, warn_on_full_buffer=False)
        self._handlers: dict[signal.Signals, Any] = {
            number: signal.signal(number, self._note) for number in (*_STOP, signal.SIGHUP)
        }
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._wakeup)
        os.close(self._reading)
        os.close(self._writing)

    @property
    def is_stopping(self) -> bool:
        """Whether the server was asked to stop."""
        return self._stops > 0

    @property
    def is_hurried(self) -> bool:
        """Whether it was asked more than once, and should not wait for anything."""
        return self._stops > 1

    def take_reload(self) -> bool:
        """Whether it was asked to read its files again since the last call."""
        asked, self._reload = self._reload, False
        return asked

    def wait(self, seconds: float) -> None:
        """Wait for a signal or a `wake`, at most this long."""
        if select.select([self._reading], [], [], seconds)[0]:
            os.read(self._reading, 4_096)

    def wake(self) -> None:
        """End the wait; any thread may call it."""
        os.write(self._writing, b"\0")

    def _note(self, number: int, frame: FrameType | None) -> None:
        # Numbers only: a lock could be held by the code that the signal interrupts.
        if number == signal.SIGHUP:
            self._reload = True
        else:
            self._stops += 1
