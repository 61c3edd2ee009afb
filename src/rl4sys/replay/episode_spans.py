"""Which transitions of a replay belong to one episode, and in which order: to look ahead in it, or back."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from rl4sys.experience import Array, StreamKey

UNFINISHED = -1
"""In place of a place."""
BYTES_PER_ROW = 40
"""Memory that is taken for each transition that can be held."""


class Places(NamedTuple):
    """Where transitions are listed, and where their spans begin and end there: [B] each."""

    own: Array
    """`UNFINISHED` where the end of the stretch is not known yet; the others mean nothing then."""
    begin: Array
    last: Array

    def of(self, rows: Array) -> Places:
        """Those of some rows."""
        return Places(self.own[rows], self.begin[rows], self.last[rows])


class EpisodeSpans:
    """Lists the ids of each stretch (an episode, as far as it is known without a gap) one after the other.

    Streams take turns, so the transitions of an episode lie scattered; once it is over they get places in a row. From
    a place the whole stretch can be reached by counting. A stretch is over when its episode is, or when its stream
    goes on elsewhere because something in between was lost.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._listed = 0
        """Places given so far."""
        # While one of its transitions is held, at most 2 · capacity places were given since the stretch began:
        # only ids within one capacity before and after its end can be among them, and each but once.
        self._ids = np.zeros(2 * capacity, np.int64)
        self._places = np.full((capacity, 3), UNFINISHED, np.int64)
        self._unfinished: dict[StreamKey, deque[range]] = {}

    def add(self, stream: StreamKey, ids: range, first: int, *, goes_on: bool, is_over: bool) -> None:
        """Take in new transitions of a stream, where `first` is the oldest id that is held now."""
        held = np.arange(max(ids.start, first), ids.stop)
        self._places[held % self._capacity, 0] = UNFINISHED
        before = self._unfinished.pop(stream, deque())
        if before and not goes_on:
            self._list(before, first)
            before = deque()
        if before and before[-1].stop == ids.start:
            before[-1] = range(before[-1].start, ids.stop)
        else:
            before.append(ids)
        while before[0].stop <= first:
            before.popleft()
        if is_over:
            self._list(before, first)
        else:
            self._unfinished[stream] = before
        # The longest silent come first. What was overwritten needs no end: let it not fill memory.
        while self._unfinished and next(iter(self._unfinished.values()))[-1].stop <= first:
            del self._unfinished[next(iter(self._unfinished))]

    def places(self, ids: Array) -> Places:
        """Where these transitions [B] are listed."""
        found = self._places.take(ids % self._capacity, axis=0, mode="clip")
        return Places(found[:, 0], found[:, 1], found[:, 2])

    def held_since(self, places: Places, first: int) -> Array:
        """The place [B] of the oldest transition of each stretch that is held, `first` being the oldest id of all."""
        is_whole = self.ids(places.begin) >= first
        if is_whole.all():
            return places.begin
        # Ids grow along a stretch, so those that are held are its end: search for where they begin.
        low, high = places.begin, np.where(is_whole, places.begin, places.own)
        while (apart := high - low > 1).any():
            middle = (low + high) // 2
            is_held = self.ids(middle) >= first
            high = np.where(apart & is_held, middle, high)
            low = np.where(apart & ~is_held, middle, low)
        return high

    def ids(self, places: Array) -> Array:
        """The ids [B] at these places."""
        return self._ids.take(places % len(self._ids), mode="clip")

    def rebuild(self, successor: Array, unfinished: Mapping[StreamKey, int], first: int) -> None:
        """Forget everything, and find the spans of what is held: `successor` has an id or −1 for each, in order.

        `unfinished` names the newest id of each stream that may go on.
        """
        count = len(successor)
        self._listed = 0
        self._places.fill(UNFINISHED)
        beginning = np.arange(count)
        linked = np.flatnonzero(successor >= 0)
        beginning[successor[linked] - first] = linked
        while not np.array_equal(further := beginning[beginning], beginning):
            beginning = further
        open_ends = np.array([last - first for last in unfinished.values()], np.int64)
        open_beginnings = beginning[open_ends]
        self._unfinished = {
            stream: _ranges(np.flatnonzero(beginning == start) + first)
            for stream, start in zip(unfinished, open_beginnings, strict=True)
        }
        in_order = np.argsort(beginning, kind="stable")
        ids = in_order[~np.isin(beginning[in_order], open_beginnings)] + first
        _, starts, lengths = np.unique(beginning[ids - first], return_index=True, return_counts=True)
        self._give_places(ids, np.repeat(starts, lengths), np.repeat(starts + lengths - 1, lengths))

    def _list(self, ranges: deque[range], first: int) -> None:
        held = [np.arange(max(part.start, first), part.stop) for part in ranges if part.stop > first]
        ids = np.concatenate([np.zeros(0, np.int64), *held])
        self._give_places(ids, self._listed, self._listed + len(ids) - 1)

    def _give_places(self, ids: Array, begin: Array | int, last: Array | int) -> None:
        slots, places = ids % self._capacity, np.arange(self._listed, self._listed + len(ids))
        self._ids[places % len(self._ids)] = ids
        self._places[slots, 0], self._places[slots, 1], self._places[slots, 2] = places, begin, last
        self._listed += len(ids)


def _ranges(ids: Array) -> deque[range]:
    """Rising ids as runs of neighbours."""
    parts = np.split(ids, np.flatnonzero(np.diff(ids) != 1) + 1)
    return deque(range(int(part[0]), int(part[-1]) + 1) for part in parts if len(part))
