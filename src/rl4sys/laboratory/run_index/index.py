"""The index of all runs below one directory: an SQLite file that many processes share and that can be rebuilt.

The run directories are the source of truth. `sync` looks at all of them and reads those that changed, so that runs that
were copied, removed or trained without an index appear as they are.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple
from pathlib import Path
from typing import Any, NamedTuple, Self

from rl4sys.file_lock import FileLock
from rl4sys.laboratory.run_index.database import JSON_COLUMN, TABLE, connect, is_busy, is_damage, is_unwritable
from rl4sys.laboratory.run_index.filters import RunFilter
from rl4sys.laboratory.run_index.records import COLUMNS, UNFINISHED, RunRecord, Status, read_record, resume_command
from rl4sys.run_finder import DEPTH, RUNS, runs_below

FILE = ".index.sqlite"
_LOCK_SECONDS = 10.0
"""Seconds to wait for another process that writes."""
_BATCH = 200
_PUT = f"INSERT OR REPLACE INTO runs VALUES ({', '.join('?' for _ in TABLE)})"
_CAN_RESUME = f"resumable AND status IN {tuple(map(str, UNFINISHED))}"


class NoRuns(FileNotFoundError):
    """The directory to search for runs does not exist."""


class IndexDamaged(RuntimeError):
    """The file of the index cannot be read."""


class IndexBusy(RuntimeError):
    """Another process holds the lock of the index."""


def root_of(run: Path) -> Path:
    """The directory whose index contains a run.

    That is `runs/` if the run is below it; otherwise its outermost near ancestor with an index, or its parent.
    """
    if RUNS.resolve() in run.resolve().parents:
        return RUNS
    near = run.resolve().parents[: DEPTH + 1]
    return next((place for place in reversed(near) if (place / FILE).is_file()), run.parent)


def record_at(run: Path) -> tuple[Path, RunRecord]:
    """The record of one run, read from its directory, and the directory that its id starts from."""
    root = root_of(run)
    return root, read_record(root, run.resolve().relative_to(root.resolve()).as_posix())


class Query(NamedTuple):
    """Which records to select, in which order, how many at most (−1 is no limit), and how many of them to skip."""

    filter: RunFilter = RunFilter("true")
    order: str = "created DESC, id"
    limit: int = -1
    offset: int = 0


ALL = Query()


class Index:
    """The records of all runs below `root`. `open_index` returns one that is intact and up to date."""

    def __init__(self, root: Path, *, timeout: float = _LOCK_SECONDS, in_memory: bool = False) -> None:
        self.root = root
        self.path = root / FILE
        self.is_kept = not in_memory
        """Whether it is a file, and not only in memory."""
        self._database = connect(":memory:" if in_memory else self.path, timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def put(self, records: Sequence[RunRecord]) -> None:
        """Add records, or replace those of the same runs."""
        with self._database:
            self._database.executemany(_PUT, [_row(record) for record in records])

    def remove(self, ids: Sequence[str]) -> None:
        """Remove the records of runs."""
        with self._database:
            self._database.executemany("DELETE FROM runs WHERE id = ?", [(id_,) for id_ in ids])

    def select(self, query: Query = ALL) -> list[RunRecord]:
        """The records that a query selects."""
        return [_record(row) for row in self._rows(query, ", ".join(COLUMNS))]

    def json_lines(self, query: Query = ALL) -> Iterator[str]:
        """The same records as JSON objects, one per line, in a fraction of the time."""
        for id_, json_object, can_resume in self._rows(query, f"id, {JSON_COLUMN}, {_CAN_RESUME}"):
            directory = f"{self.root}/{id_}"
            resume = json.dumps(resume_command(directory)) if can_resume else "null"
            yield f'{json_object[:-1]}, "directory": {json.dumps(directory)}, "resume": {resume}}}'

    def count(self, query: Query = ALL) -> int:
        """How many records the condition of a query selects, without its limit."""
        sql = f"SELECT count(*) FROM runs WHERE {query.filter.sql}"
        return int(self._database.execute(sql, query.filter.values).fetchone()[0])

    def revision(self) -> tuple[int, int]:
        """Numbers that differ after any change of a record, by another process or by this one."""
        (elsewhere,) = self._database.execute("PRAGMA data_version").fetchone()
        return elsewhere, self._database.total_changes

    def sync(self, report: Callable[[str], None] = lambda text: None) -> int:
        """Bring the index up to date with the directories; returns how many records changed."""
        known = dict(self._database.execute("SELECT id, stamp FROM runs").fetchall())
        present = runs_below(self.root, known, report)
        gone = [id_ for id_ in known if id_ not in present]
        changed = [id_ for id_, stamp in present.items() if stamp != known.get(id_)]
        if len(changed) > 2 * _BATCH:
            report(f"reading {len(changed):,} runs below {self.root} into the index …")
        written = len(gone)
        for start in range(0, len(changed), _BATCH):
            written += self._read_again(changed[start : start + _BATCH])
        if gone:
            self.remove(gone)
        return written

    def check(self) -> None:
        """Raise an error if the file is damaged or not an index."""
        self._database.execute(f"SELECT {', '.join(TABLE)} FROM runs LIMIT 0")
        (outcome,) = self._database.execute("PRAGMA quick_check(1)").fetchone()
        if outcome != "ok":
            raise IndexDamaged(f"{self.path}: {outcome}")

    def _rows(self, query: Query, columns: str) -> Iterator[tuple[Any, ...]]:
        sql = f"SELECT {columns} FROM runs WHERE {query.filter.sql} ORDER BY {query.order} LIMIT ? OFFSET ?"
        return iter(self._database.execute(sql, [*query.filter.values, query.limit, query.offset]))

    def _read_again(self, ids: Sequence[str]) -> int:
        those = RunFilter(f"id IN ({', '.join('?' for _ in ids)})", tuple(ids))
        before = {record.id: record for record in self.select(Query(those))}
        read = []
        for id_ in ids:
            # Another process may remove a run meanwhile.
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                read.append(read_record(self.root, id_))
        changed = [record for record in read if record != before.get(record.id)]
        if changed:
            self.put(changed)
        return len(changed)


def open_index(root: Path = RUNS, report: Callable[[str], None] = lambda text: None) -> Index:
    """The index of a directory, intact and up to date.

    One that is missing or damaged is rebuilt from the runs. One that cannot be written is built in memory.
    """
    if not root.is_dir():
        raise NoRuns(f"There is no directory '{root}' with runs; train one (rl4sys train --help), or give --runs.")
    try:
        return _opened(Index(root), report)
    except (IndexDamaged, sqlite3.DatabaseError) as error:
        if is_busy(error):
            raise IndexBusy(
                f"Another process has kept {root / FILE} locked for {_LOCK_SECONDS:.0f} s; "
                f"try again, or stop that process."
            ) from error
        if not is_unwritable(error):
            if not isinstance(error, IndexDamaged) and not is_damage(error):
                raise
            report(f"the index of {root} is damaged ({error}); it is rebuilt from the runs")
            if _replaced(root):
                return _opened(Index(root), report)
    # Runs of another user, or a full disk: everything is read each time.
    return _opened(Index(root, in_memory=True), report)


def _replaced(root: Path) -> bool:
    """Replace a damaged index with an empty one, unless another process just did; false if that is not permitted."""
    # One process at a time: the second must not remove what the first has created.
    with FileLock.acquire(root):
        try:
            if _is_damaged(root):
                discard(root)
                Index(root).close()
        except PermissionError:
            return False
    return True


def _is_damaged(root: Path) -> bool:
    try:
        with Index(root) as index:
            index.check()
    except (IndexDamaged, sqlite3.DatabaseError) as error:
        return isinstance(error, IndexDamaged) or is_damage(error)
    return False


def discard(root: Path) -> None:
    """Remove the file of an index, with the files that SQLite keeps beside it."""
    for ending in ("", "-wal", "-shm", "-journal"):
        (root / f"{FILE}{ending}").unlink(missing_ok=True)


def _opened(index: Index, report: Callable[[str], None]) -> Index:
    try:
        index.check()
        index.sync(report)
    except BaseException:
        index.close()
        raise
    return index


def _row(record: RunRecord) -> tuple[Any, ...]:
    values = astuple(record)
    # Tags with a space on either side, so that SQL can search for a whole one.
    cells = (f" {' '.join(value)} " if isinstance(value, tuple) else value for value in values)
    return (*cells, json.dumps(record.own_values()))


def _record(row: Sequence[Any]) -> RunRecord:
    values = dict(zip(COLUMNS, row, strict=True))
    values["tags"] = tuple(values["tags"].split())
    values["resumable"] = bool(values["resumable"])
    values["dirty"] = None if values["dirty"] is None else bool(values["dirty"])
    values["status"] = Status(values["status"])
    return RunRecord(**values)
