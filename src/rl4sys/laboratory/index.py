"""The index of all runs below one directory: an SQLite file that many processes may use, and that may be lost.

The run directories are the truth. `sync` looks at all of them and reads those that changed, so that runs which were
copied, removed or trained by somebody who knows nothing of an index appear as they are.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple
from pathlib import Path
from typing import Any, NamedTuple, Self

from rl4sys.laboratory.database import connect, is_busy, is_damage, is_out_of_reach
from rl4sys.laboratory.filters import Condition
from rl4sys.laboratory.records import COLUMNS, RunRecord, Status, read_record, told
from rl4sys.laboratory.run_files import is_run

FILE = ".index.sqlite"
RUNS = Path("runs")
"""Where runs are made and looked for unless something else is said."""
_PATIENCE = 10.0
"""Seconds to wait for another process that writes."""
_BATCH = 200
_DEPTH = 4
_PUT = f"INSERT OR REPLACE INTO runs VALUES ({', '.join('?' for _ in COLUMNS)})"


class NoRuns(FileNotFoundError):
    """There is no directory to look for runs in."""


class IndexDamaged(RuntimeError):
    """The index cannot be read, though the runs can."""


class IndexBusy(RuntimeError):
    """Another process does not let go of the index."""


def root_of(run: Path) -> Path:
    """The directory whose index a run belongs to.

    `runs/` if the run lies below it; else the outermost one near it that has an index, or the one that it lies in.
    """
    if RUNS.resolve() in run.resolve().parents:
        return RUNS
    near = run.resolve().parents[: _DEPTH + 1]
    return next((place for place in reversed(near) if (place / FILE).is_file()), run.parent)


class Query(NamedTuple):
    """Which records are wanted, in which order, and how many at most; −1 is no limit."""

    condition: Condition = Condition("true")
    order: str = "created DESC, id"
    limit: int = -1


ALL = Query()


class Index:
    """The records of all runs below `root`. Use `open_index` to get one that is sound and up to date."""

    def __init__(self, root: Path, *, patience: float = _PATIENCE, in_memory: bool = False) -> None:
        self.root = root
        self.path = root / FILE
        self._database = connect(":memory:" if in_memory else self.path, patience)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        self._database.close()

    def put(self, records: Sequence[RunRecord]) -> None:
        """Add records, or put them in the place of older ones."""
        with self._database:
            self._database.executemany(_PUT, [_row(record) for record in records])

    def remove(self, ids: Sequence[str]) -> None:
        """Forget runs."""
        with self._database:
            self._database.executemany("DELETE FROM runs WHERE id = ?", [(id_,) for id_ in ids])

    def select(self, query: Query = ALL) -> list[RunRecord]:
        """The records that are asked for."""
        return [_record(row) for row in self._rows(query)]

    def facts(self, query: Query = ALL) -> list[dict[str, Any]]:
        """The same for scripts, in a fraction of the time."""
        return [told(_values(row), self.root) for row in self._rows(query)]

    def count(self, query: Query = ALL) -> int:
        """How many records fit, whatever the limit."""
        sql = f"SELECT count(*) FROM runs WHERE {query.condition.sql}"
        return int(self._database.execute(sql, query.condition.values).fetchone()[0])

    def sync(self, tell: Callable[[str], None] = lambda text: None) -> int:
        """Bring the index up to date with the directories; how many records changed."""
        known = dict(self._database.execute("SELECT id, stamp FROM runs").fetchall())
        present = dict(_runs_below(self.root, known))
        gone = [id_ for id_ in known if id_ not in present]
        changed = [id_ for id_, stamp in present.items() if stamp != known.get(id_)]
        if len(changed) > 2 * _BATCH:
            tell(f"reading {len(changed):,} runs below {self.root} into the index …")
        written = len(gone)
        for start in range(0, len(changed), _BATCH):
            written += self._read_again(changed[start : start + _BATCH])
        if gone:
            self.remove(gone)
        return written

    def clear(self) -> None:
        """Forget everything, so that the next `sync` reads every run."""
        with self._database:
            self._database.execute("DELETE FROM runs")

    def check(self) -> None:
        """Raise if the file is not what SQLite wrote."""
        (verdict,) = self._database.execute("PRAGMA quick_check(1)").fetchone()
        if verdict != "ok":
            raise IndexDamaged(f"{self.path}: {verdict}")

    def _rows(self, query: Query) -> Iterator[tuple[Any, ...]]:
        sql = f"SELECT * FROM runs WHERE {query.condition.sql} ORDER BY {query.order} LIMIT ?"
        return iter(self._database.execute(sql, [*query.condition.values, query.limit]))

    def _read_again(self, ids: Sequence[str]) -> int:
        those = Condition(f"id IN ({', '.join('?' for _ in ids)})", tuple(ids))
        before = {record.id: record for record in self.select(Query(those))}
        read = []
        for id_ in ids:
            # A run may be removed while this looks at it.
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                read.append(read_record(self.root, id_))
        news = [record for record in read if record != before.get(record.id)]
        if news:
            self.put(news)
        return len(news)


def open_index(root: Path = RUNS, tell: Callable[[str], None] = lambda text: None, *, anew: bool = False) -> Index:
    """The index of a directory, sound and up to date; `anew` reads every run again.

    One that is damaged is made anew from the runs.
    """
    if not root.is_dir():
        raise NoRuns(f"There is no directory '{root}' with runs; train one (rl4sys train --help), or give --runs.")
    try:
        return _opened(Index(root), tell, anew)
    except (IndexDamaged, sqlite3.DatabaseError) as error:
        if is_out_of_reach(error):
            # Somebody else's runs: everything is read each time.
            return _opened(Index(root, in_memory=True), tell, anew)
        if is_busy(error):
            raise IndexBusy(
                f"Another process has kept {root / FILE} locked for {_PATIENCE:.0f} s; try again, or stop that process."
            ) from error
        if not isinstance(error, IndexDamaged) and not is_damage(error):
            raise
        tell(f"the index of {root} is damaged ({error}); it is made anew from the runs")
        discard(root)
    return _opened(Index(root), tell, anew)


def discard(root: Path) -> None:
    """Remove the file of an index, with what SQLite keeps beside it."""
    for ending in ("", "-wal", "-shm", "-journal"):
        (root / f"{FILE}{ending}").unlink(missing_ok=True)


def _opened(index: Index, tell: Callable[[str], None], anew: bool) -> Index:
    try:
        index.check()
        if anew:
            index.clear()
        index.sync(tell)
    except BaseException:
        index.close()
        raise
    return index


def _runs_below(root: Path, known: dict[str, int]) -> Iterator[tuple[str, int]]:
    """Every run with its time of change. What the index knows as a run need not be looked into."""
    waiting = [("", 0)]
    while waiting:
        prefix, depth = waiting.pop()
        with contextlib.suppress(FileNotFoundError, NotADirectoryError), os.scandir(root / prefix) as entries:
            for entry in entries:
                id_ = prefix + entry.name
                if entry.name.startswith(".") or not entry.is_dir():
                    continue
                if id_ in known or is_run(root / id_):
                    yield id_, entry.stat().st_mtime_ns
                elif depth < _DEPTH:
                    waiting.append((f"{id_}/", depth + 1))


def _row(record: RunRecord) -> tuple[Any, ...]:
    values = astuple(record)
    # Tags with a space on either side, so that a whole one can be looked for.
    return tuple(f" {' '.join(value)} " if isinstance(value, tuple) else value for value in values)


def _record(row: Sequence[Any]) -> RunRecord:
    values = _values(row)
    values["status"] = Status(values["status"])
    return RunRecord(**values)


def _values(row: Sequence[Any]) -> dict[str, Any]:
    values = dict(zip(COLUMNS, row, strict=True))
    values["tags"] = tuple(values["tags"].split())
    values["resumable"] = bool(values["resumable"])
    values["dirty"] = None if values["dirty"] is None else bool(values["dirty"])
    return values
