"""The life of a learner's worker, in a thread or a process: restore, follow the log, save when asked to stop."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from rl4sys.algorithms import UnsuitableActions, UnsuitableNetwork
from rl4sys.config import ConfigError
from rl4sys.file_lock import FileLock
from rl4sys.records import Files, RecordReader, RecordsGone
from rl4sys.replay import UnsuitableBuffer
from rl4sys.server.events import Event, Failed, Refused, Stopped
from rl4sys.server.fold import Fold
from rl4sys.server.logs import working_for

_log = logging.getLogger(__name__)

_BATCH_BYTES = 64 << 10
"""Records read at once: small, so that the host hears of progress often."""
_TELL_SECONDS = 0.02
"""At least between two reports of progress, which the host would hear after every push otherwise."""
_IDLE_SECONDS = 0.25
"""A nudge comes with every commit; this is for one that was lost with its sender."""
_PREDECESSOR_SECONDS = 20.0


class PredecessorLives(RuntimeError):
    """Another worker still folds this log."""


class Control:
    """How a host reaches its worker."""

    def __init__(self) -> None:
        self._wake = threading.Event()
        self._stop = threading.Event()

    def nudge(self) -> None:
        """There are new records."""
        self._wake.set()

    def stop(self) -> None:
        """Save and leave."""
        self._stop.set()
        self._wake.set()

    def is_stopping(self) -> bool:
        """Whether it was asked to leave."""
        return self._stop.is_set()

    def rest(self, seconds: float = _IDLE_SECONDS) -> bool:
        """Wait for a nudge, but not for ever; whether one came. One that came before counts."""
        is_nudged = self._wake.wait(seconds)
        self._wake.clear()
        return is_nudged


def work(directory: Path, files: Files | None, control: Control, tell: Callable[[Event], None]) -> None:
    """Fold until asked to stop. The last event says how it ended; whatever went wrong, the host hears of it."""
    with working_for(directory.name):
        _work(directory, files, control, tell)


def _work(directory: Path, files: Files | None, control: Control, tell: Callable[[Event], None]) -> None:
    position = 0
    try:
        with _alone(directory / "worker.lock", control):
            reader = RecordReader(directory / "log", files=files)
            try:
                fold = Fold(directory, reader.committed(), tell)
                reader.position = position = fold.position
                # Each thread has its own count, so learners in one process do not disturb each other.
                torch.set_num_threads(fold.threads)
                # Before the host hears of weights: without its checkpoint, a learner whose log was pruned has none.
                records = reader.read(_BATCH_BYTES)
                tell(fold.ready())
                told_at, is_told = time.monotonic(), True
                while not control.is_stopping():
                    for record in records:
                        position, is_told = record.number, False
                        fold.take(record)
                        if control.is_stopping():
                            break
                    if not is_told and time.monotonic() - told_at >= _TELL_SECONDS:
                        tell(fold.progress())
                        told_at, is_told = time.monotonic(), True
                    if not records and control.rest(_IDLE_SECONDS if is_told else _TELL_SECONDS):
                        # Every nudge is answered, since the host sends no second one before that.
                        is_told = False
                    records = reader.read(_BATCH_BYTES)
                tell(fold.progress())
                fold.save()
                fold.close()
            finally:
                reader.close()
        tell(Stopped())
    except (ConfigError, UnsuitableActions, UnsuitableBuffer, UnsuitableNetwork) as error:
        tell(Refused(str(error)))
    except RecordsGone as error:
        _log.exception("The log of %s does not reach back to its checkpoint.", directory.name)
        problem = (
            f"{error} What it held was learned from and then removed, and no checkpoint that can be loaded goes that "
            f"far. The log is kept. Bring {directory / 'checkpoints'} back from a copy, or move {directory} away to "
            f"begin anew; then restart the server."
        )
        tell(Failed(problem, position))
    except Exception as error:
        _log.exception("The worker of %s failed.", directory.name)
        tell(Failed(f"{type(error).__name__}: {error}", position))


@contextmanager
def _alone(path: Path, control: Control, clock: Callable[[], float] = time.monotonic) -> Iterator[None]:
    """Hold the right to fold: the worker of a server that was killed may live a moment longer than that server."""
    deadline = clock() + _PREDECESSOR_SECONDS
    while (lock := FileLock.try_acquire(path, create=0o600)) is None:
        if clock() > deadline or control.is_stopping():
            raise PredecessorLives(f"Another process still holds {path}. End it, or serve another data directory.")
        control.rest()
    with lock:
        yield
