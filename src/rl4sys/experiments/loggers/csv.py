"""`metrics.csv`: the metrics as a table, for spreadsheets."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from rl4sys.atomic_files import replace_file
from rl4sys.experiments.loggers.registry import LoggedRun, LoggerConfig, register_logger
from rl4sys.experiments.metrics import MetricRecord, flat_record
from rl4sys.run_files import METRICS_TABLE

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
