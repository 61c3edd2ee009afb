"""`episodes.csv`: one row for each episode of the training, for spreadsheets and data frames."""

from __future__ import annotations

import csv
import io
import logging
from collections.abc import Iterable
from pathlib import Path

from rl4sys.atomic_files import replace_file
from rl4sys.environments import EpisodeSummary
from rl4sys.experiments.metrics import MetricRecord
from rl4sys.state import State

_FIXED = ("episode", "step", "lane", "return", "length", "ending")
_log = logging.getLogger(__name__)


class EpisodeLog:
    """Collects rows and writes them with the metrics. Resuming removes the rows that a checkpoint did not know.

    Numbers that environments put into `info` have columns of their own; where a new one appears, the file is
    rewritten. A file that cannot be written is given up with a warning: it is worth less than the run.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._columns = list(_FIXED)
        self._count = 0
        self._rows: list[dict[str, str]] = []
        self._is_broken = False

    def note(self, episodes: Iterable[EpisodeSummary], step: int) -> None:
        """Take note of the episodes that ended in a turn, whose last step is given."""
        for episode in episodes:
            self._count += 1
            row = {
                "episode": str(self._count),
                "step": str(step),
                "lane": str(episode.lane),
                "return": repr(float(episode.return_)),
                "length": str(episode.length),
                "ending": episode.ending.name.lower(),
            }
            row |= {name: repr(value) for name, value in episode.info.items() if name not in _FIXED}
            self._rows.append(row)

    def log(self, record: MetricRecord) -> None:
        """Write what was collected since the last record."""
        self.flush()

    def flush(self) -> None:
        """Write the rows that are waiting."""
        rows, self._rows = self._rows, []
        if not rows or self._is_broken:
            return
        try:
            self._write(rows)
        except OSError as error:
            self._is_broken = True
            _log.warning("%s is incomplete from now on: %s", self._path, error)

    def state(self) -> State:
        """How many episodes there were; they are in the file then."""
        self.flush()
        return {"episodes": self._count}

    def restore(self, state: State | None) -> None:
        """Cut the file back to where a state was taken; a run that began without this file continues without it."""
        self._rows = []
        if state is None:
            self._is_broken = True
            return
        self._count = int(state["episodes"])
        if not self._path.is_file():
            return
        lines = self._path.read_text(encoding="utf-8").splitlines(keepends=True)
        self._columns = next(csv.reader(lines[:1]), list(_FIXED))
        if len(lines) <= self._count:
            _log.warning("%s lost its last rows: %d of %d are there.", self._path, len(lines) - 1, self._count)
        kept = lines[: self._count + 1]
        if len(kept) < len(lines):
            replace_file(self._path, "".join(kept).encode())

    def close(self) -> None:
        """Write what is left."""
        self.flush()

    def _write(self, rows: list[dict[str, str]]) -> None:
        missing = dict.fromkeys(name for row in rows for name in row if name not in self._columns)
        if not self._path.is_file() or missing:
            self._columns += missing
            replace_file(self._path, self._text([dict(zip(self._columns, self._columns, strict=True)), *self._read()]))
        with self._path.open("ab") as file:
            file.write(self._text(rows))

    def _read(self) -> list[dict[str, str]]:
        if not self._path.is_file():
            return []
        with self._path.open(newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))

    def _text(self, rows: Iterable[dict[str, str]]) -> bytes:
        text = io.StringIO()
        csv.DictWriter(text, self._columns, restval="", lineterminator="\n").writerows(rows)
        return text.getvalue().encode()
