"""What a run tells about itself: records, the file that keeps them, and loggers that must not stop it."""

from __future__ import annotations

import hashlib
import json
import logging
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Record:
    """Metrics at one step. `timing` depends on the machine and is left out when runs are compared."""

    step: int
    metrics: Mapping[str, float]
    timing: Mapping[str, float]


class Logger(Protocol):
    """Takes records somewhere."""

    def log(self, record: Record) -> None:
        """Take one record."""

    def close(self) -> None:
        """Finish."""


class MetricsFile:
    """`metrics.jsonl`: one record per line. Resuming cuts it back to where the checkpoint was taken."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path.open("a", encoding="utf-8")

    def log(self, record: Record) -> None:
        """Append a line."""
        metrics = {name: value if math.isfinite(value) else None for name, value in record.metrics.items()}
        line = {"step": record.step, "metrics": metrics, "timing": dict(record.timing)}
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()

    def offset(self) -> int:
        """The length of the file once everything so far is on the disk."""
        self._file.flush()
        os.fsync(self._file.fileno())
        return self._file.tell()

    def cut(self, offset: int) -> None:
        """Forget what was written after a checkpoint."""
        self._file.truncate(offset)
        self._file.seek(0, os.SEEK_END)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class TensorBoard:
    """Event files that TensorBoard shows."""

    def __init__(self, directory: Path) -> None:
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary
        from tensorboard.summary.writer.event_file_writer import EventFileWriter

        self._event, self._summary = Event, Summary
        self._writer = EventFileWriter(str(directory))

    def log(self, record: Record) -> None:
        """Write every metric as a scalar."""
        values = {**record.metrics, **{f"timing/{name}": value for name, value in record.timing.items()}}
        summary = self._summary(value=[self._summary.Value(tag=n, simple_value=v) for n, v in values.items()])
        wall = record.timing.get("unix_time", 0.0)
        self._writer.add_event(self._event(step=record.step, wall_time=wall, summary=summary))

    def close(self) -> None:
        """Flush and close."""
        self._writer.close()


class Loggers:
    """Several loggers as one; one that fails is reported once and left out, and training goes on."""

    def __init__(self, loggers: Sequence[Logger]) -> None:
        self._loggers = list(loggers)

    def log(self, record: Record) -> None:
        """Hand the record to every logger."""
        for logger in list(self._loggers):
            try:
                logger.log(record)
            except Exception as error:  # a logger is an accessory: whatever it raises, the run is worth more
                self._loggers.remove(logger)
                _log.warning("%s failed and is left out from now on: %s", type(logger).__name__, error)

    def close(self) -> None:
        """Close every logger."""
        for logger in self._loggers:
            try:
                logger.close()
            except Exception as error:  # as above
                _log.warning("%s could not be closed: %s", type(logger).__name__, error)


def read_metrics(path: Path) -> Iterator[dict[str, Any]]:
    """The records of a metrics file; a last line that was cut off by a kill is passed over."""
    with path.open(encoding="utf-8") as file:
        for line in file:
            if line.endswith("\n"):
                yield json.loads(line)


def metrics_digest(path: Path) -> str:
    """SHA-256 of the metric history, without timing."""
    sha = hashlib.sha256()
    for record in read_metrics(path):
        sha.update(json.dumps([record["step"], record["metrics"]], sort_keys=True).encode())
    return sha.hexdigest()
