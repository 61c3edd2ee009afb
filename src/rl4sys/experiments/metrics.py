"""Metric records, and the file that holds them."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import logging
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from rl4sys.experience import Array

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class MetricRecord:
    """Metrics at one step. `timing` depends on the machine and is left out when runs are compared."""

    step: int
    metrics: Mapping[str, float]
    timing: Mapping[str, float]

    def to_json(self) -> str:
        """One line of JSON; a number that is not finite becomes null."""
        metrics = {name: value if math.isfinite(value) else None for name, value in self.metrics.items()}
        return json.dumps({"step": self.step, "metrics": metrics, "timing": dict(self.timing)})


class JsonLine(Protocol):
    """What can be written as one line."""

    def to_json(self) -> str:
        """The line, without its end."""


class Logger(Protocol):
    """Takes records somewhere."""

    def log(self, record: MetricRecord) -> None:
        """Take one record."""

    def close(self) -> None:
        """Finish."""


class MetricsFile:
    """`metrics.jsonl`: one record per line. Resuming cuts it back to where the checkpoint was taken."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path.open("ab", buffering=0)
        self._length = path.stat().st_size

    @property
    def length(self) -> int:
        """Bytes written so far."""
        return self._length

    def log(self, record: JsonLine) -> None:
        """Append a whole line, or none when the disk is full."""
        line = record.to_json().encode() + b"\n"
        try:
            written = self._file.write(line)
            if written != len(line):
                raise OSError(f"only {written} of {len(line)} bytes could be written to {self.path}")
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(self._file.fileno(), self._length)
            raise
        self._length += len(line)

    def offset(self) -> int:
        """The length of the file, with everything so far on the disk."""
        try:
            os.fsync(self._file.fileno())
        except OSError as error:
            # A record is worth less than a checkpoint: `cut` warns if anything is missing after a crash.
            _log.warning("%s may be incomplete after a crash: %s", self.path, error)
        return self._length

    def cut(self, offset: int) -> None:
        """Remove what was written after a checkpoint; warn when records from before it are missing."""
        if self._length < offset:
            _log.warning("%s lost its last records: %d of %d bytes are there.", self.path, self._length, offset)
            offset = len(self.path.read_bytes().rpartition(b"\n")[0]) + 1 if self._length else 0
        os.ftruncate(self._file.fileno(), offset)
        self._length = offset

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def flat_record(record: MetricRecord) -> dict[str, float]:
    """Metrics and timing in one mapping, for loggers that make no difference."""
    return {**record.metrics, **{f"timing/{name}": value for name, value in record.timing.items()}}


def read_metrics(path: Path) -> Iterator[dict[str, Any]]:
    """The records of a metrics file, if there is one; lines that a kill or a bad disk spoilt are skipped."""
    if not path.is_file():
        return
    with path.open(encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, start=1):
            if not line.endswith("\n"):
                return
            try:
                record: dict[str, Any] = json.loads(line)
            except ValueError:
                _log.warning("%s, line %d is damaged and skipped.", path, number)
                continue
            yield record


def metric_columns(path: Path) -> dict[str, Array]:
    """The records of a metrics file as columns: `step` as int64, metrics as float64 with NaN where missing."""
    records = list(read_metrics(path))
    names = dict.fromkeys(name for record in records for name in record["metrics"])
    columns: dict[str, Array] = {"step": np.array([record["step"] for record in records], np.int64)}
    for name in names:
        values = (record["metrics"].get(name) for record in records)
        columns[name] = np.array([np.nan if value is None else value for value in values], np.float64)
    return columns


def metrics_table(path: Path) -> Any:
    """The same as a pandas DataFrame if pandas is installed, and otherwise as they are."""
    columns = metric_columns(path)
    if importlib.util.find_spec("pandas") is None:
        return columns
    return importlib.import_module("pandas").DataFrame(columns)


def metrics_digest(path: Path) -> str:
    """SHA-256 of the metric history, without timing."""
    sha = hashlib.sha256()
    for record in read_metrics(path):
        sha.update(json.dumps([record["step"], record["metrics"]], sort_keys=True).encode())
    return sha.hexdigest()
