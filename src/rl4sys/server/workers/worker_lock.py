"""The right to fold the log of a learner, which one process has at a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from rl4sys.file_lock import FileLock

_PREDECESSOR_SECONDS = 20.0
_NAME = "worker.lock"


class PredecessorLives(RuntimeError):
    """Another worker still folds this log."""


class Waiting(Protocol):
    """The process or thread that waits for the right, and may be asked to stop."""

    def is_stopping(self) -> bool:
        """Whether it was asked to stop."""

    def wait(self) -> object:
        """Wait for a moment."""


@contextmanager
def folding_alone(directory: Path, waiting: Waiting, clock: Callable[[], float] = time.monotonic) -> Iterator[None]:
    """Hold the right to fold: the worker of a killed server may outlive that server for a moment."""
    path = directory / _NAME
    deadline = clock() + _PREDECESSOR_SECONDS
    while (lock := FileLock.try_acquire(path, create=0o600)) is None:
        if clock() > deadline or waiting.is_stopping():
            raise PredecessorLives(f"Another process still holds {path}. End it, or serve another data directory.")
        waiting.wait()
    with lock:
        yield
