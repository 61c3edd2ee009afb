"""The SQLite file of an index, which many processes open at once and the first one creates."""

from __future__ import annotations

import sqlite3
import time
import zlib
from collections.abc import Callable
from pathlib import Path

from rl4sys.laboratory.run_index.records import COLUMNS

JSON_COLUMN = "facts"
"""A record as a JSON object: made when it is written, so that `list --json` only copies text."""
TABLE = (*COLUMNS, JSON_COLUMN)
_SCHEMA = f"CREATE TABLE runs ({', '.join(TABLE)}, PRIMARY KEY (id)) WITHOUT ROWID"
_VERSION = zlib.crc32(_SCHEMA.encode()) >> 1
"""Stored in the file: an index with other columns is rebuilt."""


def connect(path: Path | str, timeout: float) -> sqlite3.Connection:
    """Open the database and create its table if needed; wait up to `timeout` seconds for other processes."""
    database = sqlite3.connect(path, timeout=timeout, isolation_level="IMMEDIATE")
    try:
        _retry_while_busy(lambda: _prepare(database), timeout)
    except BaseException:
        database.close()
        raise
    return database


def is_unwritable(error: Exception) -> bool:
    """Whether the file cannot be opened or written: no permission, a full disk, or an I/O error."""
    return _code(error) in (
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
    )


def is_busy(error: Exception) -> bool:
    """Whether another process holds the lock of the file."""
    return _code(error) == sqlite3.SQLITE_BUSY


def is_damage(error: Exception) -> bool:
    """Whether the file is damaged or not an index."""
    return _code(error) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR)


def _code(error: Exception) -> int | None:
    # The lower byte is the primary code, the rest extends it. Errors that the sqlite3 module raises itself have none.
    code = getattr(error, "sqlite_errorcode", None) if isinstance(error, sqlite3.Error) else None
    return None if code is None else code & 0xFF


def _prepare(database: sqlite3.Connection) -> None:
    (mode,) = database.execute("PRAGMA journal_mode").fetchone()
    if mode != "wal":
        database.execute("PRAGMA journal_mode = WAL")
    # Records that a power cut loses are read from the runs again.
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
    """Retry while another process prepares the same file: SQLite does not wait when it changes the journal mode."""
    deadline = time.monotonic() + timeout
    while True:
        try:
            return action()
        except sqlite3.OperationalError as error:
            if not is_busy(error) or time.monotonic() > deadline:
                raise
        time.sleep(0.01)
