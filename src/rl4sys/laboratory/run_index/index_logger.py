"""Keeps the index up to date while a run trains. It may fail; the run goes on, and the index is read anew later."""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rl4sys.laboratory.run_index.index import Index, root_of
from rl4sys.laboratory.run_index.records import RunRecord, read_record, with_course
from rl4sys.laboratory.run_index.training_process import Process, this_process
from rl4sys.run_files import RETURN, Course

if TYPE_CHECKING:
    from rl4sys.experiments import MetricRecord

_log = logging.getLogger(__name__)

_INTERVAL = 5.0
"""Seconds between two updates, besides those at evaluations."""
_PATIENCE = 0.5
"""Seconds that training may wait for another process that writes to the index."""


@contextmanager
def follow(run: Path) -> Iterator[Follower]:
    """Note in a run and in the index that this process trains it, how far it is, and how it ended.

    Give what this yields to `Run.train` as one of its loggers.
    """
    follower = Follower(run)
    cause = None
    try:
        yield follower
    except Exception as error:
        cause = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        raise
    finally:
        follower.conclude(cause)


class Follower:
    """A logger that notes in the index how far a run is."""

    def __init__(self, run: Path, clock: Callable[[], float] = time.time) -> None:
        self._run, self._clock = run, clock
        self._root = root_of(run)
        self._id = run.resolve().relative_to(self._root.resolve()).as_posix()
        self._complained = False
        self._index: Index | None = None
        self._process: Process | None = None
        self._record: RunRecord | None = None
        self._due = 0.0
        with self._accessory():
            self._process = this_process(run, clock())
            self._process.write(run)
            self._index = Index(self._root, patience=_PATIENCE)
            self._put(read_record(self._root, self._id))

    def log(self, record: MetricRecord) -> None:
        """Take note of evaluations at once, and of steps now and then."""
        evaluation = record.metrics.get(RETURN)
        if self._record is None or (evaluation is None and self._clock() < self._due):
            return
        was = self._record
        with self._accessory():
            self._put(with_course(was, Course(was.steps, was.best, was.last).after(record.step, evaluation)))

    def close(self) -> None:
        """Nothing yet: only when training has returned it is known how the run ended."""

    def conclude(self, cause: str | None) -> None:
        """Note how the run ended, and what it failed of if it did."""
        with self._accessory():
            if self._process is not None:
                self._process.end(self._clock(), cause).write(self._run)
        with self._accessory():
            self._put(read_record(self._root, self._id))
        if self._index is not None:
            self._index.close()

    def _put(self, record: RunRecord) -> None:
        self._record = record
        self._due = self._clock() + _INTERVAL
        if self._index is not None:
            self._index.put([record])

    @contextmanager
    def _accessory(self) -> Iterator[None]:
        """What fails in here is told once, and training goes on."""
        try:
            yield
        except (OSError, sqlite3.Error) as error:
            if not self._complained:
                _log.warning("The index of runs is not kept up to date: %s. `rl4sys list` reads the run itself.", error)
            self._complained = True
            # Not tried again: a run should not wait for an index twice.
            if self._index is not None:
                self._index.close()
            self._index = None
