"""The index of all runs below one directory: an SQLite file that many processes may use, and that may be lost.

The run directories are the truth. `sync` looks at all of them and reads those that changed, so that runs which were
copied, removed or trained by somebody who knows nothing of an index appear as they are.
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
from rl4sys.laboratory.run_index.database import FACTS, TABLE, connect, is_busy, is_damage, is_out_of_reach
from rl4sys.laboratory.run_index.filters import Condition
from rl4sys.laboratory.run_index.records import COLUMNS, UNFINISHED, RunRecord, Status, read_record, resume_command
from rl4sys.run_finder import DEPTH, RUNS, find_all, find_one, runs_below

FILE = ".index.sqlite"
_LOCK_SECONDS = 10.0
"""Seconds to wait for another process that writes."""
_BATCH = 200
_PUT = f"INSERT OR REPLACE INTO runs VALUES ({', '.join('?' for _ in TABLE)})"
_CAN_GO_ON = f"resumable AND status IN {tuple(map(str, UNFINISHED))}"


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
    near = run.resolve().parents[: DEPTH + 1]
    return next((place for place in reversed(near) if (place / FILE).is_file()), run.parent)


class Query(NamedTuple):
    """Which records are wanted, in which order, and how many at most; −1 is no limit."""

    condition: Condition = Condition("true")
    order: str = "created DESC, id"
    limit: int = -1


ALL = Query()


class Index:
    """The records of all runs below `root`. Use `open_index` to get one that is sound and up to date."""

    def __init__(self, root: Path, *, timeout: float = _LOCK_SECONDS, in_memory: bool = False) -> None:
        self.root = root
        self.path = root / FILE
        self.is_kept = not in_memory
        """Whether it is a file that the next command finds again."""
        self._database = connect(":memory:" if in_memory else self.path, timeout)

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
        return [_record(row) for row in self._rows(query, ", ".join(COLUMNS))]

    def json_lines(self, query: Query = ALL) -> Iterator[str]:
        """The facts of the same records, one JSON object each, in a fraction of the time."""
        for id_, facts, can_go_on in self._rows(query, f"id, {FACTS}, {_CAN_GO_ON}"):
            directory = f"{self.root}/{id_}"
            resume = json.dumps(resume_command(directory)) if can_go_on else "null"
            yield f'{facts[:-1]}, "directory": {json.dumps(directory)}, "resume": {resume}}}'

    def count(self, query: Query = ALL) -> int:
        """How many records fit, whatever the limit."""
        sql = f"SELECT count(*) FROM runs WHERE {query.condition.sql}"
        return int(self._database.execute(sql, query.condition.values).fetchone()[0])

    def find_one(self, text: str) -> tuple[Path, RunRecord]:
        """The only run that a path, an id or the beginning of either names, with the directory its id starts from."""
        return self._found(find_one(text, self.root, self._ids()))

    def find_all(self, texts: Sequence[str]) -> list[tuple[Path, RunRecord]]:
        """All runs that some texts name, each once; the beginning of several names stands for all of them."""
        paths = dict.fromkeys(path for text in texts for path in find_all(text, self.root, self._ids()))
        return [self._found(path) for path in paths]

    def _ids(self) -> list[str]:
        return [id_ for (id_,) in self._rows(ALL, "id")]

    def _found(self, path: Path) -> tuple[Path, RunRecord]:
        if path.is_relative_to(self.root):
            id_ = path.relative_to(self.root).as_posix()
            if records := self.select(Query(Condition("id = ?", (id_,)))):
                return self.root, records[0]
        # A run elsewhere, which this index does not contain.
        whole = path.resolve()
        return path.parent, read_record(whole.parent, whole.name)

    def sync(self, tell: Callable[[str], None] = lambda text: None) -> int:
        """Bring the index up to date with the directories; how many records changed."""
        known = dict(self._database.execute("SELECT id, stamp FROM runs").fetchall())
        present = runs_below(self.root, known, tell)
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
        """Raise if the file is not what an index should be."""
        self._database.execute(f"SELECT {', '.join(TABLE)} FROM runs LIMIT 0")
        (verdict,) = self._database.execute("PRAGMA quick_check(1)").fetchone()
        if verdict != "ok":
            raise IndexDamaged(f"{self.path}: {verdict}")

    def _rows(self, query: Query, columns: str) -> Iterator[tuple[Any, ...]]:
        sql = f"SELECT {columns} FROM runs WHERE {query.condition.sql} ORDER BY {query.order} LIMIT ?"
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
        if is_busy(error):
            raise IndexBusy(
                f"Another process has kept {root / FILE} locked for {_LOCK_SECONDS:.0f} s; "
                f"try again, or stop that process."
            ) from error
        if not is_out_of_reach(error):
            if not isinstance(error, IndexDamaged) and not is_damage(error):
                raise
            tell(f"the index of {root} is damaged ({error}); it is made anew from the runs")
            if _replaced(root):
                return _opened(Index(root), tell, anew)
    # Somebody else's runs, or no room for an index: everything is read each time.
    return _opened(Index(root, in_memory=True), tell, anew)


def _replaced(root: Path) -> bool:
    """Put an empty index in the place of a damaged one, unless another process just did; false if it stays."""
    # One at a time: who comes second must not remove what the first has made.
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


def _row(record: RunRecord) -> tuple[Any, ...]:
    values = astuple(record)
    # Tags with a space on either side, so that a whole one can be looked for.
    cells = (f" {' '.join(value)} " if isinstance(value, tuple) else value for value in values)
    return (*cells, json.dumps(record.own_facts()))


def _record(row: Sequence[Any]) -> RunRecord:
    values = dict(zip(COLUMNS, row, strict=True))
    values["tags"] = tuple(values["tags"].split())
    values["resumable"] = bool(values["resumable"])
    values["dirty"] = None if values["dirty"] is None else bool(values["dirty"])
    values["status"] = Status(values["status"])
    return RunRecord(**values)
