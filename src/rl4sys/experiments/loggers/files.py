"""Loggers that write files into the run: `metrics.csv` for spreadsheets, and event files for TensorBoard."""

from __future__ import annotations

import csv
import io
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

from rl4sys.atomic_files import replace_file
from rl4sys.config import flat
from rl4sys.experiments.loggers.registry import LoggedRun, LoggerConfig, Requirement, register_logger
from rl4sys.experiments.metrics import MetricRecord, flat_record
from rl4sys.run_files import METRICS_TABLE, TENSORBOARD

_STEP = "step"


@register_logger("csv")
class CsvConfig(LoggerConfig):
    """The run's `metrics.csv`."""

    def build(self, run: LoggedRun) -> CsvLogger:
        """The file, without rows of later steps than the run's."""
        return CsvLogger(run.directory / METRICS_TABLE, run.step)


class CsvLogger:
    """One row per record, one column per metric. The file is rewritten when a new metric appears."""

    def __init__(self, path: Path, step: int) -> None:
        """`step` is where the run resumes: rows beyond it will come again."""
        self._path = path
        self._columns, rows = _read(path)
        kept = [row for row in rows if int(row[_STEP]) <= step]
        self._rewrite(kept)
        self._file = path.open("a", newline="", encoding="utf-8")

    def log(self, record: MetricRecord) -> None:
        """Append a row."""
        row = {_STEP: str(record.step), **{name: repr(value) for name, value in flat_record(record).items()}}
        if missing := [name for name in row if name not in self._columns]:
            self._file.close()
            _, rows = _read(self._path)
            self._columns += missing
            self._rewrite(rows)
            self._file = self._path.open("a", newline="", encoding="utf-8")
        self._file.write(self._lines([row]))
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _rewrite(self, rows: list[dict[str, str]]) -> None:
        replace_file(self._path, (self._lines([{name: name for name in self._columns}, *rows])).encode())

    def _lines(self, rows: list[dict[str, str]]) -> str:
        text = io.StringIO()
        csv.DictWriter(text, self._columns, restval="").writerows(rows)
        return text.getvalue()


def _read(path: Path) -> tuple[list[str], list[dict[str, str]]]:
    """The columns and the whole rows of a file; a row that a kill cut short is left out."""
    if not path.is_file():
        return [_STEP], []
    with path.open(newline="", encoding="utf-8") as file:
        whole = file.read().rpartition("\n")[0]
    reader = csv.DictReader(io.StringIO(whole))
    rows = [row for row in reader if row[_STEP].isdigit() and None not in row.values()]
    return list(reader.fieldnames or [_STEP]), rows


@register_logger("tensorboard")
class TensorBoardConfig(LoggerConfig):
    """Event files in the run's `tensorboard/`."""

    requires: ClassVar[Requirement | None] = Requirement("tensorboard", "rl4sys[train]")

    def build(self, run: LoggedRun) -> TensorBoardLogger:
        """A new event file, which hides what an earlier process logged after the run's step."""
        board = TensorBoardLogger(run.directory / TENSORBOARD, run.step)
        board.note_settings(run.config)
        return board


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

    def note_settings(self, config: Mapping[str, Any]) -> None:
        """Write the settings for the tab HPARAMS, where runs are compared by them."""
        from tensorboard.plugins.hparams.summary_v2 import hparams_pb

        sections = ("algorithm", "buffer", "environment", "experiment", "network", "training")
        chosen = ((place, value) for place, value in flat(config) if place[0] in sections)
        settings = {".".join(place): value for place, value in chosen if isinstance(value, str | int | float)}
        self._write(self._event(wall_time=self._clock(), summary=hparams_pb(settings)))

    def _write(self, event: Any) -> None:
        self._writer.write(event.SerializeToString())
        self._writer.flush()

    def close(self) -> None:
        """Flush and close."""
        self._writer.close()
