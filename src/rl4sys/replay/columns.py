"""Where replayed transitions lie: preallocated columns, written in a ring."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from rl4sys.experience import Array, Arrays, Ending, Segment, StreamKey, Transitions
from rl4sys.replay.storage import InMemory, Storage
from rl4sys.state import State, StateMismatch, require

OBSERVATION, NEXT_OBSERVATION, EXTRAS = "observation/", "next_observation/", "extras/"
PREDECESSOR = "predecessor"


class Columns:
    """The newest `capacity` transitions; the id of each is the number of transitions added before it.

    Transition i lies in slot i % capacity. What comes after it in its episode is its successor, which may
    arrive much later. Saved rows therefore name the predecessor instead: once written they never change.
    """

    def __init__(self, capacity: int, n_step: int = 1, storage: Storage | None = None) -> None:
        if capacity < 1 or n_step < 1:
            raise ValueError(f"Replay with capacity {capacity} and n_step {n_step}: choose at least 1 for both.")
        self.capacity = capacity
        self.total = 0
        """One past the id of the newest transition."""
        self._n_step = n_step
        self._storage = storage or InMemory()
        self._columns: dict[str, Array] = {}
        self._observation: Arrays = {}
        self._next_observation: Arrays = {}
        self._extras: Arrays = {}
        self._successor = np.full(capacity, -1, np.int64)
        self._tails: dict[StreamKey, _Tail] = {}
        self._awaited = 0

    @property
    def first(self) -> int:
        """The id of the oldest transition that is held."""
        return max(0, self.total - self.capacity)

    def append(self, segment: Segment) -> bool:
        """Copy a segment in, over the oldest transitions when no slot is free; whether it goes on from one held."""
        self._require_complete()
        start, self.total = self.total, self.total + segment.steps
        rows = {"action": segment.action, "reward": segment.reward, "discount": segment.discount()}
        rows |= {EXTRAS + name: array for name, array in segment.extras.items()}
        rows |= {OBSERVATION + name: array[:-1] for name, array in segment.observation.items()}
        rows |= {NEXT_OBSERVATION + name: array[1:] for name, array in segment.observation.items()}
        self._write(start, rows)
        for piece, slots in self.pieces(start, self.total):
            self._successor[slots] = np.arange(start + piece.start + 1, start + piece.stop + 1)
        self._successor[(self.total - 1) % self.capacity] = -1
        return self._link(segment, start)

    def batch(self, ids: Array, weight: Array) -> Transitions:
        """The transitions with these ids, in arrays of their own."""
        self._require_complete()
        start = ids % self.capacity
        if self._n_step == 1:
            end, span = start, np.ones(len(ids), np.int64)
            reward = _take(self._columns["reward"], start)
        else:
            end, span, reward = self._windows(start)
        return Transitions(
            observation={name: _take(column, start) for name, column in self._observation.items()},
            action=_take(self._columns["action"], start),
            reward=reward,
            discount=_take(self._columns["discount"], end),
            next_observation={name: _take(column, end) for name, column in self._next_observation.items()},
            span=span,
            extras={name: _take(column, start) for name, column in self._extras.items()},
            weight=weight,
            ids=ids,
        )

    def followed_by(self, name: str, ids: Array) -> Array:
        """One array of what was observed after the transitions with these ids."""
        return _take(self._next_observation[name], ids % self.capacity)

    def chains(self) -> tuple[Array, Mapping[StreamKey, int]]:
        """The successor of every id that is held, −1 where there is none; and the newest id of unfinished streams."""
        self._require_complete()
        successor = _take(self._successor, np.arange(self.first, self.total) % self.capacity)
        return successor, {stream: tail.last for stream, tail in self._tails.items() if tail.last >= self.first}

    def pieces(self, first: int, last: int) -> Iterator[tuple[slice, slice]]:
        """What is held of ids [first, last): slices counted from `first`, and the slots they lie in."""
        begin, end = max(first, self.first), min(last, self.total)
        while begin < end:
            slot = begin % self.capacity
            count = min(end - begin, self.capacity - slot)
            yield slice(begin - first, begin - first + count), slice(slot, slot + count)
            begin += count

    def ids_in(self, slots: Array) -> Array:
        """The ids of the transitions that lie in these slots."""
        newest = self.total - 1
        return newest - (newest - slots) % self.capacity

    def rows(self, first: int, last: int) -> Mapping[str, Array]:
        """Copies of the transitions with ids [first, last), to be saved; they never change afterwards."""
        if not self.first <= first <= last <= self.total:
            raise ValueError(
                f"Rows {first} to {last} were asked for, but {self.first} to {self.total} are held. "
                f"Save new rows before {self.capacity} more steps are added."
            )
        rows = {
            name: np.empty((last - first, *column.shape[1:]), column.dtype) for name, column in self._columns.items()
        }
        for piece, slots in self.pieces(first, last):
            for name, column in self._columns.items():
                rows[name][piece] = column[slots]
        slots_before = np.flatnonzero((self._successor >= first) & (self._successor < last))
        rows[PREDECESSOR] = np.full(last - first, -1, np.int64)
        rows[PREDECESSOR][self._successor[slots_before] - first] = self.ids_in(slots_before)
        return rows

    def load_rows(self, first: int, rows: Mapping[str, Array]) -> None:
        """Take back, after `restore`, what `rows` returned, in any order; passes over what gave way since."""
        if len(rows[PREDECESSOR]) == 0:
            return
        columns = {name: array for name, array in rows.items() if name != PREDECESSOR}
        if self._columns and columns.keys() != self._columns.keys():
            raise StateMismatch(
                f"The saved rows from {first} have columns {sorted(columns)}; expected "
                f"{sorted(self._columns)}. Resume with the version and the configuration that wrote them."
            )
        predecessor = rows[PREDECESSOR]
        self._write(first, columns)
        ids = np.arange(first, first + len(predecessor))
        linked = (predecessor >= self.first) & (ids < self.total)
        self._successor[predecessor[linked] % self.capacity] = ids[linked]
        self._awaited -= sum(slots.stop - slots.start for _, slots in self.pieces(first, first + len(ids)))

    def state(self) -> State:
        """Everything but the rows."""
        tails = [[*stream, *tail] for stream, tail in self._tails.items()]
        return {"capacity": self.capacity, "total": self.total, "tails": tails}

    def restore(self, state: State) -> None:
        """Stand where `state` was taken, and wait for the rows."""
        require(state, "capacity", "total", "tails")
        if state["capacity"] != self.capacity:
            raise StateMismatch(
                f"The saved replay has capacity {state['capacity']}, this one {self.capacity}. "
                f"Resume with the capacity that was saved."
            )
        self.total = int(state["total"])
        self._tails = {StreamKey(*tail[:3]): _Tail(*tail[3:]) for tail in state["tails"]}
        self._successor.fill(-1)
        self._awaited = self.total - self.first

    def _windows(self, start: Array) -> tuple[Array, Array, Array]:
        """The last slot [B] and the length [B] of each window, and its rewards [B, n]."""
        stored = self._columns["reward"]
        reward = np.zeros((len(start), self._n_step), stored.dtype)
        reward[:, 0] = _take(stored, start)
        end, span = start, np.ones(len(start), np.int64)
        for step in range(1, self._n_step):
            # A window that has ended stays where it is, and so finds no successor ever after.
            successor = _take(self._successor, end)
            goes_on = successor >= 0
            end = np.where(goes_on, successor % self.capacity, end)
            reward[:, step] = _take(stored, end) * goes_on
            span += goes_on
        return end, span, reward

    def _write(self, start: int, rows: Mapping[str, Array]) -> None:
        if not self._columns:
            self._allocate(rows)
        for piece, slots in self.pieces(start, start + len(rows["reward"])):
            for name, column in self._columns.items():
                column[slots] = rows[name][piece]

    def _allocate(self, rows: Mapping[str, Array]) -> None:
        self._columns = {
            name: self._storage.allocate((self.capacity, *array.shape[1:]), array.dtype) for name, array in rows.items()
        }
        self._observation = self._group(OBSERVATION)
        self._next_observation = self._group(NEXT_OBSERVATION)
        self._extras = self._group(EXTRAS)

    def _group(self, prefix: str) -> Arrays:
        return {name.removeprefix(prefix): column for name, column in self._columns.items() if name.startswith(prefix)}

    def _link(self, segment: Segment, start: int) -> bool:
        """Tie the new transitions to the end of their stream, if it is held, and remember the new end."""
        tail = self._tails.pop(segment.stream, None)
        is_tied = tail is not None and tail.precedes(segment) and tail.last >= self.first
        if tail is not None and is_tied:
            self._successor[tail.last % self.capacity] = start
        if segment.ending is Ending.CONTINUES:
            self._tails[segment.stream] = _Tail(segment.episode, segment.start + segment.steps, self.total - 1)
        # The longest silent come first. Once overwritten they need no successor: let them not fill memory.
        while self._tails and next(iter(self._tails.values())).last < self.first:
            del self._tails[next(iter(self._tails))]
        return is_tied

    def _require_complete(self) -> None:
        if self._awaited != 0:
            raise StateMismatch(
                f"The replay was restored with {self.total - self.first} transitions, but {self._awaited} "
                f"were not loaded (if negative: loaded twice). Call load_rows once for every saved chunk."
            )


class _Tail(NamedTuple):
    """Where an unfinished episode of one stream stopped."""

    episode: int
    next_step: int
    last: int
    """The id of its newest transition."""

    def precedes(self, segment: Segment) -> bool:
        return self.episode == segment.episode and self.next_step == segment.start


def _take(column: Array, slots: Array) -> Array:
    # The fastest way numpy has: "clip" only spares the check for slots out of range, of which there are none.
    return column.take(slots, axis=0, mode="clip")
