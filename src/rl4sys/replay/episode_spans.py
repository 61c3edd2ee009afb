"""Which transitions of a replay buffer belong to one episode, and in which order, to look ahead or back in it."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from rl4sys.experience import Array, StreamKey

UNFINISHED = -1
"""The position of a transition whose span has not ended."""
BYTES_PER_ROW = 40
"""Memory for each transition that can be held."""


class Positions(NamedTuple):
    """The positions of transitions in the list, and those of the first and last transition of their spans: [B] each."""

    own: Array
    """`UNFINISHED` if the span has not ended; the other two are then undefined."""
    first: Array
    last: Array

    def select(self, rows: Array) -> Positions:
        """The positions of some rows."""
        return Positions(self.own[rows], self.first[rows], self.last[rows])


class EpisodeSpans:
    """Lists the ids of each span, which is an episode as far as it is known without a gap, in consecutive positions.

    Streams are interleaved, so the transitions of an episode are scattered over the buffer. When a span ends, its
    transitions get consecutive positions, so that any other transition of the span is found by counting. A span ends
    with its episode, or when its stream continues elsewhere because a segment was lost.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._listed = 0
        """The number of positions assigned so far."""
        # While a transition of a span is held, at most 2 · capacity positions were assigned since the span began:
        # only to ids within one capacity before and after its end, and once to each.
        self._ids = np.zeros(2 * capacity, np.int64)
        self._positions = np.full((capacity, 3), UNFINISHED, np.int64)
        self._unfinished: dict[StreamKey, deque[range]] = {}

    def add(self, stream: StreamKey, ids: range, oldest: int, *, continues: bool, is_over: bool) -> None:
        """Add new transitions of a stream; `oldest` is the oldest id that is still held.

        `continues` says whether they continue the unfinished span of the stream, `is_over` whether the episode ends.
        """
        held = np.arange(max(ids.start, oldest), ids.stop)
        self._positions[held % self._capacity, 0] = UNFINISHED
        before = self._unfinished.pop(stream, deque())
        if before and not continues:
            self._list(before, oldest)
            before = deque()
        if before and before[-1].stop == ids.start:
            before[-1] = range(before[-1].start, ids.stop)
        else:
            before.append(ids)
        while before[0].stop <= oldest:
            before.popleft()
        if is_over:
            self._list(before, oldest)
        else:
            self._unfinished[stream] = before
        # Streams that were silent longest come first. Overwritten transitions need no positions: free their memory.
        while self._unfinished and next(iter(self._unfinished.values()))[-1].stop <= oldest:
            del self._unfinished[next(iter(self._unfinished))]

    def positions(self, ids: Array) -> Positions:
        """The positions of these transitions [B]."""
        found = self._positions.take(ids % self._capacity, axis=0, mode="clip")
        return Positions(found[:, 0], found[:, 1], found[:, 2])

    def first_held(self, positions: Positions, oldest: int) -> Array:
        """The position [B] of the oldest transition of each span that is held; `oldest` is the oldest id held."""
        is_whole = self.ids(positions.first) >= oldest
        if is_whole.all():
            return positions.first
        # Ids increase along a span, so those that are held are at its end: binary search for the first of them.
        low, high = positions.first, np.where(is_whole, positions.first, positions.own)
        while (apart := high - low > 1).any():
            middle = (low + high) // 2
            is_held = self.ids(middle) >= oldest
            high = np.where(apart & is_held, middle, high)
            low = np.where(apart & ~is_held, middle, low)
        return high

    def ids(self, positions: Array) -> Array:
        """The ids [B] at these positions."""
        return self._ids.take(positions % len(self._ids), mode="clip")

    def rebuild(self, successor: Array, unfinished: Mapping[StreamKey, int], oldest: int) -> None:
        """Find the spans of all transitions held, from the successor of each, which is an id or −1, oldest first.

        `unfinished` has the newest id of each stream whose episode has not ended.
        """
        count = len(successor)
        self._listed = 0
        self._positions.fill(UNFINISHED)
        beginning = np.arange(count)
        linked = np.flatnonzero(successor >= 0)
        beginning[successor[linked] - oldest] = linked
        while not np.array_equal(further := beginning[beginning], beginning):
            beginning = further
        open_ends = np.array([last - oldest for last in unfinished.values()], np.int64)
        open_beginnings = beginning[open_ends]
        self._unfinished = {
            stream: _ranges(np.flatnonzero(beginning == start) + oldest)
            for stream, start in zip(unfinished, open_beginnings, strict=True)
        }
        in_order = np.argsort(beginning, kind="stable")
        ids = in_order[~np.isin(beginning[in_order], open_beginnings)] + oldest
        _, starts, lengths = np.unique(beginning[ids - oldest], return_index=True, return_counts=True)
        self._assign_positions(ids, np.repeat(starts, lengths), np.repeat(starts + lengths - 1, lengths))

    def _list(self, ranges: deque[range], oldest: int) -> None:
        held = [np.arange(max(part.start, oldest), part.stop) for part in ranges if part.stop > oldest]
        ids = np.concatenate([np.zeros(0, np.int64), *held])
        self._assign_positions(ids, self._listed, self._listed + len(ids) - 1)

    def _assign_positions(self, ids: Array, first: Array | int, last: Array | int) -> None:
        slots, positions = ids % self._capacity, np.arange(self._listed, self._listed + len(ids))
        self._ids[positions % len(self._ids)] = ids
        self._positions[slots, 0], self._positions[slots, 1], self._positions[slots, 2] = positions, first, last
        self._listed += len(ids)


def _ranges(ids: Array) -> deque[range]:
    """Increasing ids as ranges of consecutive ones."""
    parts = np.split(ids, np.flatnonzero(np.diff(ids) != 1) + 1)
    return deque(range(int(part[0]), int(part[-1]) + 1) for part in parts if len(part))
