"""Event files for TensorBoard."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

from rl4sys.experiments.loggers.registry import LoggedRun, LoggerConfig, Requirement, register_logger
from rl4sys.experiments.metrics import MetricRecord, flat_record
from rl4sys.run_files import TENSORBOARD


@register_logger("tensorboard")
class TensorBoardConfig(LoggerConfig):
    """Event files in the run's `tensorboard/`."""

    requires: ClassVar[Requirement | None] = Requirement("tensorboard", "rl4sys[train]")

    def build(self, run: LoggedRun) -> TensorBoardLogger:
        """A new event file, which hides what an earlier process logged after the run's step."""
        return TensorBoardLogger(run.directory / TENSORBOARD, run.step)


class TensorBoardLogger:
    """Event files that TensorBoard shows."""

    def __init__(self, directory: Path, step: int, clock: Callable[[], float] = time.time) -> None:
        from tensorboard.compat.proto.event_pb2 import Event, SessionLog
        from tensorboard.compat.proto.summary_pb2 import Summary
        from tensorboard.summary.writer.record_writer import RecordWriter

        self._event, self._summary, self._clock = Event, Summary, clock
        directory.mkdir(parents=True, exist_ok=True)
        # Written here and not by TensorBoard's own writer, whose thread would die aloud on a full disk.
        self._writer = RecordWriter((directory / f"events.out.tfevents.{time.time_ns()}").open("wb"))
        self._write(Event(wall_time=clock(), file_version="brain.Event:2"))
        # TensorBoard forgets what an earlier process logged at this step or later: it will come again.
        start = SessionLog(status=SessionLog.START)
        self._write(Event(step=step + 1, wall_time=clock(), session_log=start))

    def log(self, record: MetricRecord) -> None:
        """Write every metric as a scalar."""
        values = flat_record(record).items()
        summary = self._summary(value=[self._summary.Value(tag=name, simple_value=value) for name, value in values])
        self._write(self._event(step=record.step, wall_time=self._clock(), summary=summary))

    def _write(self, event: Any) -> None:
        self._writer.write(event.SerializeToString())
        self._writer.flush()

    def close(self) -> None:
        """Flush and close."""
        self._writer.close()
