"""Waiting without sleeping longer than needed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import monotonic

_pause = threading.Event()


def until(fact: Callable[[], bool], seconds: float = 10.0) -> None:
    """Return as soon as it is so; fail when it is not in time."""
    deadline = monotonic() + seconds
    while not fact():
        assert monotonic() < deadline, "it did not happen in time"
        _pause.wait(0.002)
