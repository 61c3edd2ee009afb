"""The file of an index: opened by many processes at once, prepared by whichever comes first."""

from __future__ import annotations

import sqlite3
import time
import zlib
from collections.abc import Callable
from pathlib import Path

from rl4sys.laboratory.run_index.records import COLUMNS

FACTS = "facts"
"""A record as scripts get it, in JSON: made when it is written, so that thousands are listed by copying."""
TABLE = (*COLUMNS, FACTS)
_SCHEMA = f"CREATE TABLE runs ({', '.join(TABLE)}, PRIMARY KEY (id)) WITHOUT ROWID"
_VERSION = zlib.crc32(_SCHEMA.encode()) >> 1
"""Kept in the file: an index with other columns is made anew."""


def connect(path: Path | str, timeout: float) -> sqlite3.Connection:
    """The database with its table, which is empty if there was none; waits so many seconds for other processes."""
    database = sqlite3.connect(path, timeout=timeout, isolation_level="IMMEDIATE")
    try:
        _retry_while_busy(lambda: _prepare(database), timeout)
    except BaseException:
        database.close()
        raise
    return database


def is_out_of_reach(error: Exception) -> bool:
    """Whether the file cannot be opened or written here: it is not ours, or the disk is full or strange."""
    return _code(error) in (
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
    )


def is_busy(error: Exception) -> bool:
    """Whether another process did not let go of the file."""
    return _code(error) == sqlite3.SQLITE_BUSY


def is_damage(error: Exception) -> bool:
    """Whether the file is not what an index should be."""
    return _code(error) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR)


def _code(error: Exception) -> int | None:
    # The lower byte is the kind of error, the rest its circumstances. Errors of Python's own have none.
    code = getattr(error, "sqlite_errorcode", None) if isinstance(error, sqlite3.Error) else None
    return None if code is None else code & 0xFF


def _prepare(database: sqlite3.Connection) -> None:
    (mode,) = database.execute("PRAGMA journal_mode").fetchone()
    if mode != "wal":
        database.execute("PRAGMA journal_mode = WAL")
    # What a power cut takes from the index is read from the runs again.
    database.execute("PRAGMA synchronous = NORMAL")
    if database.execute("PRAGMA user_version").fetchone() == (_VERSION,):
        return
    with database:
        database.execute("BEGIN IMMEDIATE")
        if database.execute("PRAGMA user_version").fetchone() != (_VERSION,):
            database.execute("DROP TABLE IF EXISTS runs")
            database.execute(_SCHEMA)
            database.execute(f"PRAGMA user_version = {_VERSION}")


def _retry_while_busy(action: Callable[[], None], timeout: float) -> None:
    """Try again while another process prepares the same file: SQLite does not wait where it changes its mode."""
    deadline = time.monotonic() + timeout
    while True:
        try:
            return action()
        except sqlite3.OperationalError as error:
            if not is_busy(error) or time.monotonic() > deadline:
                raise
        time.sleep(0.01)
