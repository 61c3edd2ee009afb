"""The order of the steps of each stream in a replay buffer, across its episodes, to draw sequences from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from rl4sys.experience import Array, StreamKey
from rl4sys.state import State, require

PREVIOUS, IS_FIRST = "previous", "is_first"
BYTES_PER_ROW = 11
"""Memory for each step that can be held."""


class _Stream(NamedTuple):
    """The end of one stream."""

    last: int
    """The id of its newest step."""
    rows: int
    """The number of its rows so far: its steps, and one row after the end of each part without a gap."""
    waiting: Array
    """The ids of its newest steps, from which it does not hold a whole sequence yet, oldest first."""
    number: Array
    """The number of the row of each of them."""


class StreamOrder:
    """Links the steps of each stream, and knows from which of them a sequence of `length` rows can be read.

    Where an episode ends, or steps of the stream were lost, a row for the final observation follows. A row that
    follows on such a one is the first of a new part: nothing before it is known to have led to it.
    """

    def __init__(self, capacity: int, length: int) -> None:
        self._capacity, self._length = capacity, length
        self._next = np.full(capacity, -1, np.int64)
        """The id of the next step of the stream, whatever its episode, or −1."""
        self._ends = np.zeros(capacity, np.bool_)
        """Whether a row with the final observation follows."""
        self._is_first = np.zeros(capacity, np.bool_)
        self._is_start = np.zeros(capacity, np.bool_)
        """Whether a whole sequence can be read from here."""
        self._starts = 0
        self._streams: dict[StreamKey, _Stream] = {}

    @property
    def starts(self) -> int:
        """The number of steps from which a whole sequence can be read."""
        return self._starts

    def make_room(self, first: int, last: int) -> None:
        """Forget the ids [first, last), which are about to be overwritten."""
        self._starts -= int(self._is_start[np.arange(first, last) % self._capacity].sum())

    def add(self, stream: StreamKey, ids: range, oldest: int, *, continues: bool, is_over: bool) -> None:
        """Add new steps of a stream; `oldest` is the oldest id that is still held.

        `continues` says whether they continue the newest step of the stream, `is_over` whether the episode ends.
        """
        held = np.arange(max(ids.start, oldest), ids.stop)
        slots = held % self._capacity
        self._next[slots] = held + 1
        for flags in (self._ends, self._is_first, self._is_start):
            flags[slots] = False
        self._next[slots[-1]], self._ends[slots[-1]] = -1, is_over
        self._is_first[slots[0]] = not continues and held[0] == ids.start
        before = self._streams.pop(stream, None)
        if before is not None and before.last >= oldest:
            before = self._joined(before, int(held[0]), oldest, continues=continues)
        else:
            before = _Stream(-1, 0, np.zeros(0, np.int64), np.zeros(0, np.int64))
        number = np.concatenate([before.number, before.rows + np.arange(len(held))])
        rows = before.rows + len(held) + is_over
        waiting = np.concatenate([before.waiting, held])
        self._streams[stream] = self._started(_Stream(ids.stop - 1, rows, waiting, number))
        # Streams that were silent longest come first. Overwritten steps need no order: free their memory.
        while next(iter(self._streams.values())).last < oldest:
            del self._streams[next(iter(self._streams))]

    def are_starts(self, ids: Array) -> Array:
        """Whether a whole sequence can be read from each of these ids [B]."""
        return self._is_start.take(ids % self._capacity, mode="clip")

    def all_starts(self, oldest: int, total: int) -> Array:
        """The ids of all steps from which a whole sequence can be read, in order."""
        return oldest + np.flatnonzero(self.are_starts(np.arange(oldest, total)))

    def sequences(self, starts: Array) -> tuple[Array, Array]:
        """The id [B, L] of each row of the sequences, and whether it is the final observation after that step."""
        ids = np.empty((self._length, len(starts)), np.int64)
        is_final = np.empty((self._length, len(starts)), np.bool_)
        current, after = starts, np.zeros(len(starts), np.bool_)
        for row in range(self._length):
            ids[row], is_final[row] = current, after
            slots = current % self._capacity
            after = self._ends.take(slots, mode="clip") & ~after
            current = np.where(after, current, self._next.take(slots, mode="clip"))
        return np.ascontiguousarray(ids.T), np.ascontiguousarray(is_final.T)

    def is_first(self, ids: Array) -> Array:
        """Whether an episode starts at each of these steps, or steps before it are missing."""
        return self._is_first.take(ids % self._capacity, mode="clip")

    def rows(self, first: int, last: int, oldest: int) -> Mapping[str, Array]:
        """The id of the previous step of the stream (−1 if it is not held), and where parts start, for [first, last).

        These never change afterwards.
        """
        previous = np.full(last - first, -1, np.int64)
        held = np.arange(oldest, last)
        following = self._next.take(held % self._capacity, mode="clip")
        linked = (following >= first) & (following < last)
        previous[following[linked] - first] = held[linked]
        return {PREVIOUS: previous, IS_FIRST: self.is_first(np.arange(first, last))}

    def load_rows(self, first: int, rows: Mapping[str, Array], oldest: int, total: int) -> None:
        """Load what `rows` returned, in any order, after `restore`; `rebuild` must follow."""
        ids = np.arange(first, first + len(rows[PREVIOUS]))
        held = (ids >= oldest) & (ids < total)
        self._is_first[ids[held] % self._capacity] = rows[IS_FIRST][held]
        linked = held & (rows[PREVIOUS] >= oldest)
        self._next[rows[PREVIOUS][linked] % self._capacity] = ids[linked]

    def state(self) -> State:
        """The newest step of each stream; all else follows from the rows."""
        return {"streams": [[*stream, ends.last] for stream, ends in self._streams.items()]}

    def restore(self, state: State) -> None:
        """Start again from a saved state; `load_rows` and `rebuild` must follow."""
        require(state, "streams")
        self._next.fill(-1)
        nothing = np.zeros(0, np.int64)
        self._streams = {StreamKey(*end[:3]): _Stream(int(end[3]), 0, nothing, nothing) for end in state["streams"]}

    def rebuild(self, successor: Array, unfinished: Mapping[StreamKey, int], oldest: int) -> None:
        """Find what can be drawn, once all rows are loaded.

        `successor` has the next step of the episode of every id held, or −1, oldest first, and `unfinished` the newest
        id of each stream whose episode has not ended.
        """
        count = len(successor)
        slots = np.arange(oldest, oldest + count) % self._capacity
        ends = successor < 0
        ends[[last - oldest for last in unfinished.values()]] = False
        self._ends[slots], self._is_start[slots], self._starts = ends, False, 0
        following = self._next[slots]
        beginning = np.arange(count)
        linked = np.flatnonzero(following >= 0)
        beginning[following[linked] - oldest] = linked
        while not np.array_equal(further := beginning[beginning], beginning):
            beginning = further
        in_order = np.argsort(beginning, kind="stable")
        first_of = beginning[in_order]
        for stream, found in self._streams.items():
            own = beginning[found.last - oldest]
            part = in_order[np.searchsorted(first_of, own) : np.searchsorted(first_of, own, side="right")]
            # A row counts after the steps before it, and after the final observations among them.
            number = np.arange(len(part)) + np.cumsum(ends[part]) - ends[part]
            rows = len(part) + int(ends[part].sum())
            self._streams[stream] = self._started(_Stream(found.last, rows, part + oldest, number))

    def _joined(self, before: _Stream, following: int, oldest: int, *, continues: bool) -> _Stream:
        """Link the newest step of a stream to the next one; if steps are missing between them, it ends a part."""
        slot = before.last % self._capacity
        self._next[slot] = following
        is_cut = not continues and not self._ends[slot]
        self._ends[slot] |= is_cut
        held = before.waiting >= oldest
        return _Stream(before.last, before.rows + is_cut, before.waiting[held], before.number[held])

    def _started(self, stream: _Stream) -> _Stream:
        """Mark the steps of a stream that have become starts."""
        count = int(np.searchsorted(stream.number, stream.rows - self._length, side="right"))
        self._is_start[stream.waiting[:count] % self._capacity] = True
        self._starts += count
        return stream._replace(waiting=stream.waiting[count:], number=stream.number[count:])
