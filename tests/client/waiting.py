"""Waiting without sleeping longer than needed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import monotonic

_pause = threading.Event()


def until(condition: Callable[[], bool], seconds: float = 10.0) -> None:
    """Return as soon as the condition holds; fail after `seconds`."""
    deadline = monotonic() + seconds
    while not condition():
        assert monotonic() < deadline, "it did not happen in time"
        _pause.wait(0.002)
