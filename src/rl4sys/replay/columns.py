"""The storage of replayed transitions: preallocated columns, written as a ring."""

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

    Transition i is in slot i % capacity. The next transition of its episode is its successor, which may arrive
    much later. Saved rows therefore name the predecessor instead: once written they never change.
    """

    def __init__(self, capacity: int, n_step: int = 1, storage: Storage | None = None) -> None:
        if capacity < 1 or n_step < 1:
            raise ValueError(f"Replay with capacity {capacity} and n_step {n_step}: choose at least 1 for both.")
        self.capacity = capacity
        self.total = 0
        """One more than the id of the newest transition."""
        self._n_step = n_step
        self._storage = storage or InMemory()
        self._columns: dict[str, Array] = {}
        self._observation: Arrays = {}
        self._next_observation: Arrays = {}
        self._extras: Arrays = {}
        self._successor = np.full(capacity, -1, np.int64)
        self._tails: dict[StreamKey, _Tail] = {}
        self._missing = 0

    @property
    def first(self) -> int:
        """The id of the oldest transition that is still held."""
        return max(0, self.total - self.capacity)

    def append(self, segment: Segment) -> bool:
        """Copy a segment in, over the oldest transitions if no slot is free.

        Returns whether it continues a transition that is still held.
        """
        self._require_complete()
        start, self.total = self.total, self.total + segment.steps
        rows = {"action": segment.action, "reward": segment.reward, "discount": segment.discount()}
        rows |= {EXTRAS + name: array for name, array in segment.extras.items()}
        rows |= {OBSERVATION + name: array[:-1] for name, array in segment.observation.items()}
        rows |= {NEXT_OBSERVATION + name: array[1:] for name, array in segment.observation.items()}
        self._write(start, rows)
        for part, slots in self.slot_ranges(start, self.total):
            self._successor[slots] = np.arange(start + part.start + 1, start + part.stop + 1)
        self._successor[(self.total - 1) % self.capacity] = -1
        return self._link(segment, start)

    def batch(self, ids: Array, weight: Array) -> Transitions:
        """Copies of the transitions with these ids."""
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

    def next_observation(self, name: str, ids: Array) -> Array:
        """One array of the next observations of the transitions with these ids."""
        return _take(self._next_observation[name], ids % self.capacity)

    def observations(self, ids: Array, is_next: Array) -> Arrays:
        """Copies of the observations before the steps with these ids [N], or after them where `is_next` [N]."""
        slots, after = ids % self.capacity, np.flatnonzero(is_next)
        found = {name: _take(column, slots) for name, column in self._observation.items()}
        for name, array in found.items():
            array[after] = _take(self._next_observation[name], slots[after])
        return found

    def steps(self, ids: Array) -> dict[str, Array]:
        """Copies of actions, rewards, discounts and extras (led by `EXTRAS`) of the steps with these ids."""
        names = ("action", "reward", "discount", *(EXTRAS + name for name in self._extras))
        return {name: _take(self._columns[name], ids % self.capacity) for name in names}

    def successors(self) -> tuple[Array, Mapping[StreamKey, int]]:
        """The successor of every id that is held, or −1, and the newest id of each unfinished episode by stream."""
        self._require_complete()
        successor = _take(self._successor, np.arange(self.first, self.total) % self.capacity)
        return successor, {stream: tail.last for stream, tail in self._tails.items() if tail.last >= self.first}

    def slot_ranges(self, first: int, last: int) -> Iterator[tuple[slice, slice]]:
        """Where the ids [first, last) that are held are stored: ranges relative to `first`, each with its slots."""
        begin, end = max(first, self.first), min(last, self.total)
        while begin < end:
            slot = begin % self.capacity
            count = min(end - begin, self.capacity - slot)
            yield slice(begin - first, begin - first + count), slice(slot, slot + count)
            begin += count

    def ids_in(self, slots: Array) -> Array:
        """The ids of the transitions in these slots."""
        newest = self.total - 1
        return newest - (newest - slots) % self.capacity

    def rows(self, first: int, last: int) -> Mapping[str, Array]:
        """Copies of the transitions with ids [first, last), to be saved; these rows never change afterwards."""
        if not self.first <= first <= last <= self.total:
            raise ValueError(
                f"Rows {first} to {last} were requested, but {self.first} to {self.total} are held. "
                f"Save new rows before {self.capacity} more steps are added."
            )
        rows = {
            name: np.empty((last - first, *column.shape[1:]), column.dtype) for name, column in self._columns.items()
        }
        for part, slots in self.slot_ranges(first, last):
            for name, column in self._columns.items():
                rows[name][part] = column[slots]
        slots_before = np.flatnonzero((self._successor >= first) & (self._successor < last))
        rows[PREDECESSOR] = np.full(last - first, -1, np.int64)
        rows[PREDECESSOR][self._successor[slots_before] - first] = self.ids_in(slots_before)
        return rows

    def load_rows(self, first: int, rows: Mapping[str, Array]) -> None:
        """Load what `rows` returned, in any order, after `restore`. Rows that were overwritten since are ignored."""
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
        self._missing -= sum(slots.stop - slots.start for _, slots in self.slot_ranges(first, first + len(ids)))

    def state(self) -> State:
        """Everything but the rows."""
        tails = [[*stream, *tail] for stream, tail in self._tails.items()]
        return {"capacity": self.capacity, "total": self.total, "tails": tails}

    def restore(self, state: State) -> None:
        """Continue where `state` was taken, once all rows are loaded."""
        require(state, "capacity", "total", "tails")
        if state["capacity"] != self.capacity:
            raise StateMismatch(
                f"The saved replay has capacity {state['capacity']}, this one {self.capacity}. "
                f"Resume with the capacity that was saved."
            )
        self.total = int(state["total"])
        self._tails = {StreamKey(*tail[:3]): _Tail(*tail[3:]) for tail in state["tails"]}
        self._successor.fill(-1)
        self._missing = self.total - self.first

    def _windows(self, start: Array) -> tuple[Array, Array, Array]:
        """The last slot [B] and the length [B] of each window, and its rewards [B, n]."""
        stored = self._columns["reward"]
        reward = np.zeros((len(start), self._n_step), stored.dtype)
        reward[:, 0] = _take(stored, start)
        end, span = start, np.ones(len(start), np.int64)
        for step in range(1, self._n_step):
            # A window that has ended keeps its last slot, which has no successor.
            successor = _take(self._successor, end)
            continues = successor >= 0
            end = np.where(continues, successor % self.capacity, end)
            reward[:, step] = _take(stored, end) * continues
            span += continues
        return end, span, reward

    def _write(self, start: int, rows: Mapping[str, Array]) -> None:
        if not self._columns:
            self._allocate(rows)
        for part, slots in self.slot_ranges(start, start + len(rows["reward"])):
            for name, column in self._columns.items():
                column[slots] = rows[name][part]

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
        """Make the new transitions successors of the last one of their stream, if it is held."""
        tail = self._tails.pop(segment.stream, None)
        is_linked = tail is not None and tail.precedes(segment) and tail.last >= self.first
        if tail is not None and is_linked:
            self._successor[tail.last % self.capacity] = start
        if segment.ending is Ending.CONTINUES:
            self._tails[segment.stream] = _Tail(segment.episode, segment.start + segment.steps, self.total - 1)
        # Streams that were silent longest come first. Overwritten transitions need no successor: free their memory.
        while self._tails and next(iter(self._tails.values())).last < self.first:
            del self._tails[next(iter(self._tails))]
        return is_linked

    def _require_complete(self) -> None:
        if self._missing != 0:
            raise StateMismatch(
                f"The replay was restored with {self.total - self.first} transitions, but {self._missing} "
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
    # The fastest way in numpy: slots are never out of range, and "clip" skips that check.
    return column.take(slots, axis=0, mode="clip")
