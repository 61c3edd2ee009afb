"""Keeps the index up to date while a run trains. If that fails, training continues and the index catches up later."""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rl4sys.laboratory.run_index.index import Index, root_of
from rl4sys.laboratory.run_index.records import RunRecord, read_record, with_progress
from rl4sys.laboratory.run_index.training_process import Heartbeat, TrainingProcess, this_process
from rl4sys.run_files import PRUNED, RETURN, RunProgress

if TYPE_CHECKING:
    from rl4sys.experiments import MetricRecord

_log = logging.getLogger(__name__)

_INTERVAL = 5.0
"""Seconds between two updates, besides those at evaluations."""
_LOCK_SECONDS = 0.5
"""Seconds that training may wait for another process that writes to the index."""


@contextmanager
def index_run(run: Path, *, is_indexed: bool = True) -> Iterator[IndexLogger]:
    """Record in a run and in the index that this process trains it, its progress, and how it ended.

    Pass the logger that this yields to `Run.train`. Without `is_indexed`, only the run is written to: on a cluster, the
    machine that launched it keeps the index, since SQLite does not work over a network.
    """
    logger = IndexLogger(run, is_indexed=is_indexed)
    cause = None
    try:
        yield logger
    except Exception as error:
        cause = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        raise
    finally:
        logger.conclude(cause)


class IndexLogger:
    """A logger that writes the progress of a run to the index."""

    def __init__(self, run: Path, clock: Callable[[], float] = time.time, *, is_indexed: bool = True) -> None:
        self._run, self._clock = run, clock
        self._root = root_of(run)
        self._id = run.resolve().relative_to(self._root.resolve()).as_posix()
        self._has_warned = False
        self._index: Index | None = None
        self._process: TrainingProcess | None = None
        self._heartbeat: Heartbeat | None = None
        self._record: RunRecord | None = None
        self._due = 0.0
        with self._failures_are_warnings():
            self._process = this_process(run, clock())
            self._process.write(run)
            # A pruned run that is resumed is like any other.
            (run / PRUNED).unlink(missing_ok=True)
            self._heartbeat = Heartbeat(self._process, run)
            if is_indexed:
                self._index = Index(self._root, timeout=_LOCK_SECONDS)
                self._put(read_record(self._root, self._id))

    def log(self, record: MetricRecord) -> None:
        """Write evaluations at once, and the number of steps every few seconds."""
        evaluation = record.metrics.get(RETURN)
        if self._record is None or (evaluation is None and self._clock() < self._due):
            return
        was = self._record
        progress = RunProgress(was.steps, was.best, was.last).after(record.step, evaluation)
        with self._failures_are_warnings():
            self._put(with_progress(was, progress))

    def close(self) -> None:
        """Nothing yet: how the run ended is known only after training has returned."""

    def conclude(self, cause: str | None) -> None:
        """Write how the run ended, with the cause if it failed."""
        if self._heartbeat is not None:
            self._heartbeat.end()
        with self._failures_are_warnings():
            if self._process is not None:
                self._process.end(self._clock(), cause).write(self._run)
        if self._index is not None:
            with self._failures_are_warnings():
                self._put(read_record(self._root, self._id))
        if self._index is not None:
            self._index.close()

    def _put(self, record: RunRecord) -> None:
        self._record = record
        self._due = self._clock() + _INTERVAL
        if self._index is not None:
            self._index.put([record])

    @contextmanager
    def _failures_are_warnings(self) -> Iterator[None]:
        """Turn the first failure into a warning, and give up the index: training must not wait for it twice."""
        try:
            yield
        except (OSError, sqlite3.Error) as error:
            if not self._has_warned:
                _log.warning("The index of runs is not kept up to date: %s. `rl4sys list` reads the run itself.", error)
            self._has_warned = True
            if self._index is not None:
                self._index.close()
            self._index = None
