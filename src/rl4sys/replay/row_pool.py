"""Rows that are needed for an unknown time, in memory or in mapped files: a place is used again once it is free."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from rl4sys.experience import Array, Arrays
from rl4sys.replay.storage import Storage

_SMALLEST = 16


class RowPool:
    """Named columns that grow by doubling. Which place a row gets is of no consequence to what is read from it."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._columns: dict[str, Array] = {}
        self._free: list[int] = []
        self._is_used = np.zeros(0, np.bool_)

    def put(self, rows: Arrays) -> Array:
        """Copy rows [N, …] in; returns their places [N]."""
        count = len(next(iter(rows.values())))
        while len(self._free) < count:
            self._grow(rows)
        places = np.array([self._free.pop() for _ in range(count)], np.int64)
        for name, column in self._columns.items():
            column[places] = rows[name]
        self._is_used[places] = True
        return places

    def release(self, places: Array) -> None:
        """Free these places."""
        self._is_used[places] = False
        self._free.extend(places.tolist())

    def take(self, name: str, places: Array) -> Array:
        """Copies of one column of the rows in these places."""
        return self._columns[name].take(places, axis=0, mode="clip")

    def set(self, name: str, place: int, value: int) -> None:
        """Change one number of one row."""
        self._columns[name][place] = value

    def between(self, name: str, first: int, last: int, order: str) -> Array:
        """The places of the rows whose number in a column is in [first, last), in the order of another column."""
        if not self._columns:
            return np.zeros(0, np.int64)
        column = self._columns[name]
        places = np.flatnonzero(self._is_used & (column >= first) & (column < last))
        return places[np.argsort(self._columns[order][places])]

    def names(self) -> Iterable[str]:
        """The names of the columns."""
        return self._columns

    def clear(self) -> None:
        """Free all places."""
        self._is_used.fill(False)
        self._free = list(range(len(self._is_used)))

    def _grow(self, like: Arrays) -> None:
        before = len(self._is_used)
        size = max(_SMALLEST, 2 * before)
        for name, rows in like.items():
            column = self._storage.allocate((size, *rows.shape[1:]), rows.dtype)
            if before:
                column[:before] = self._columns[name]
            self._columns[name] = column
        self._is_used = np.concatenate([self._is_used, np.zeros(size - before, np.bool_)])
        self._free.extend(range(size - 1, before - 1, -1))
