"""Keeps signals away from the threads that are started meanwhile: the program's own threads get them."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

_FAULTS = {signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT, signal.SIGTRAP, signal.SIGSYS}
"""Raised by a thread for itself: blocked, they would end the process without a word of faulthandler."""


@contextmanager
def signals_blocked() -> Iterator[None]:
    """Start threads that take no signals. Those that arrive meanwhile are delivered afterwards."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals() - _FAULTS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
