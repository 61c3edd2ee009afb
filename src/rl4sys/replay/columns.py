"""The storage of replayed steps: preallocated columns, written as a ring, each observation once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from rl4sys.experience import Array, Arrays, Ending, Segment, SegmentPack, StreamKey, Transitions
from rl4sys.replay.following import OPEN, Final, Following
from rl4sys.replay.frame_column import FrameColumn, Stacks
from rl4sys.replay.open_episodes import OpenEpisodes
from rl4sys.replay.saved_rows import EXTRAS, OBSERVATION, SavedRows
from rl4sys.replay.storage import InMemory, Storage
from rl4sys.state import State, StateMismatch, require


class Columns:
    """The newest `capacity` steps; the id of each is the number of steps added before it.

    Step i is in slot i % capacity. The next step of its episode is its successor, which may arrive much later; the
    observation of the successor is what followed the step. Only where there is no successor is that observation kept
    beside: the final one of an episode, and the newest one of a stream until its next segment arrives.
    Saved rows name the predecessor instead of the successor: once written they never change.
    """

    def __init__(
        self, capacity: int, n_step: int = 1, storage: Storage | None = None, stacks: Stacks | None = None
    ) -> None:
        if capacity < 1 or n_step < 1:
            raise ValueError(f"Replay with capacity {capacity} and n_step {n_step}: choose at least 1 for both.")
        self.capacity = capacity
        self.total = 0
        """One more than the id of the newest step."""
        self._n_step = n_step
        self._storage = storage or InMemory()
        self._columns: dict[str, Array] = {}
        self._observation: dict[str, Array] = {}
        self._extras: dict[str, Array] = {}
        self._stacks = {name: FrameColumn(capacity, stack, self._storage) for name, stack in (stacks or {}).items()}
        self._following = Following(capacity, self._storage)
        self._open = OpenEpisodes()
        self._missing = 0

    @property
    def first(self) -> int:
        """The id of the oldest step that is still held."""
        return max(0, self.total - self.capacity)

    def append(self, segment: Segment) -> bool:
        """Copy a segment in, over the oldest steps if no slot is free.

        Returns whether it continues a step that is still held.
        """
        self._require_complete()
        start = self.total
        self._make_room(segment.steps)
        self.total += segment.steps
        previous, interrupted = self._open.join(segment, self.total - 1, self.first)
        rows = {"action": segment.action, "reward": segment.reward, "discount": segment.discount()}
        rows |= {EXTRAS + name: array for name, array in segment.extras.items()}
        rows |= {OBSERVATION + name: array[:-1] for name, array in segment.observation.items()}
        self._write(start, rows)
        ids = np.arange(max(start, self.first), self.total)
        for name, stack in self._stacks.items():
            before = np.concatenate([[previous], ids[:-1]])
            stack.write(ids, segment.observation[name][-len(ids) - 1 : -1], before)
        is_open = segment.ending is Ending.CONTINUES
        newest = {name: array[-1:] for name, array in segment.observation.items()}
        self._following.link_new(ids)
        self._following.keep(Final(ids[-1:], np.array([OPEN]) if is_open else ids[-1:], newest))
        if previous >= 0:
            self._following.link(np.array([previous]), np.array([start]))
        if interrupted >= 0:
            # The stream continues elsewhere: what followed its newest step is final now.
            self._following.close(interrupted, since=start)
        return previous >= 0

    def can_append_pack(self, pack: SegmentPack) -> bool:
        """Whether `append_pack` does the same as appending the segments one by one."""
        is_apart = pack.has_whole_episodes and not len(self._open.ids)
        return is_apart and not self._stacks and len(pack.reward) <= self.capacity

    def append_pack(self, pack: SegmentPack) -> None:
        """Copy whole episodes in at once, over the oldest steps if no slot is free."""
        self._require_complete()
        start = self.total
        self._make_room(len(pack.reward))
        self.total += len(pack.reward)
        acted, final = pack.acted_rows, pack.final_rows
        rows = {"action": pack.action, "reward": pack.reward, "discount": pack.discount}
        rows |= {EXTRAS + name: array for name, array in pack.extras.items()}
        rows |= {OBSERVATION + name: array[acted] for name, array in pack.observation.items()}
        self._write(start, rows)
        self._following.link_new(np.arange(start, self.total))
        last = start + pack.ends - 1
        self._following.keep(Final(last, last, {name: array[final] for name, array in pack.observation.items()}))

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
            observation={name: self._observed(name, start) for name in self._names},
            action=_take(self._columns["action"], start),
            reward=reward,
            discount=_take(self._columns["discount"], end),
            next_observation=self._followed(self._names, end),
            span=span,
            extras={name: _take(column, start) for name, column in self._extras.items()},
            weight=weight,
            ids=ids,
        )

    def next_observation(self, name: str, ids: Array) -> Array:
        """One array of the next observations of the steps with these ids."""
        return self._followed([name], ids % self.capacity)[name]

    def observations(self, ids: Array, is_next: Array) -> Arrays:
        """Copies of the observations before the steps with these ids [N], or after them where `is_next` [N]."""
        slots, after = ids % self.capacity, np.flatnonzero(is_next)
        found = {name: self._observed(name, slots) for name in self._names}
        for name, array in self._followed(self._names, slots[after]).items():
            found[name][after] = array
        return found

    def steps(self, ids: Array) -> dict[str, Array]:
        """Copies of actions, rewards, discounts and extras (led by `EXTRAS`) of the steps with these ids."""
        names = ("action", "reward", "discount", *(EXTRAS + name for name in self._extras))
        return {name: _take(self._columns[name], ids % self.capacity) for name in names}

    def successors(self) -> tuple[Array, Mapping[StreamKey, int]]:
        """The successor of every id that is held, or −1, and the newest id of each unfinished episode by stream."""
        self._require_complete()
        successor = self._following.successors(np.arange(self.first, self.total) % self.capacity)
        return np.maximum(successor, -1), self._open.newest

    def slot_ranges(self, first: int, last: int) -> Iterator[tuple[slice, slice]]:
        """Where the ids [first, last) that are held are stored: ranges relative to `first`, each with its slots."""
        begin, end = max(first, self.first), min(last, self.total)
        while begin < end:
            slot = begin % self.capacity
            count = min(end - begin, self.capacity - slot)
            yield slice(begin - first, begin - first + count), slice(slot, slot + count)
            begin += count

    def ids_in(self, slots: Array) -> Array:
        """The ids of the steps in these slots."""
        newest = self.total - 1
        return newest - (newest - slots) % self.capacity

    def rows(self, first: int, last: int) -> Mapping[str, Array]:
        """Copies of the steps with ids [first, last), to be saved; these rows never change afterwards."""
        if not self.first <= first <= last <= self.total:
            raise ValueError(
                f"Rows {first} to {last} were requested, but {self.first} to {self.total} are held. "
                f"Save new rows before {self.capacity} more steps are added."
            )
        ids = np.arange(first, last)
        columns = {name: column[ids % self.capacity] for name, column in self._columns.items()}
        predecessor = np.full(last - first, -1, np.int64)
        slots, successors = self._following.predecessors(first, last)
        predecessor[successors - first] = self.ids_in(slots)
        stacks = {name: stack.rows(ids) for name, stack in self._stacks.items()}
        return SavedRows(columns, stacks, predecessor, self._following.closed(first, last)).named()

    def load_rows(self, first: int, rows: Mapping[str, Array]) -> None:
        """Load what `rows` returned, in any order, after `restore`. Rows that were overwritten since are ignored."""
        saved = SavedRows.parse(rows, self._stacks)
        count = len(saved.predecessor)
        if count == 0:
            return
        if self._columns and saved.columns.keys() != self._columns.keys():
            raise StateMismatch(
                f"The saved rows from {first} have columns {sorted(saved.columns)}; expected "
                f"{sorted(self._columns)}. Resume with the version and the configuration that wrote them."
            )
        self._write(first, saved.columns)
        ids = np.arange(first, first + count)
        for name, stack in self._stacks.items():
            stack.load_rows(ids, saved.stacks[name], saved.predecessor, self.first, self.total)
        linked = (saved.predecessor >= self.first) & (ids < self.total)
        self._following.link(saved.predecessor[linked], ids[linked])
        known = (saved.final.of >= self.first) & (saved.final.since < self.total)
        observation = {name: array[known] for name, array in saved.final.observation.items()}
        self._following.keep(Final(saved.final.of[known], saved.final.since[known], observation))
        if saved.following:
            self._load_following(ids, saved.following)
        self._missing -= sum(slots.stop - slots.start for _, slots in self.slot_ranges(first, first + count))

    def state(self) -> State:
        """Everything but the rows: also the newest observation of each stream whose episode has not ended."""
        return {
            "capacity": self.capacity,
            "total": self.total,
            "tails": self._open.state(),
            "newest": self._following.kept(self._open.ids),
            "stacks": {name: stack.state() for name, stack in self._stacks.items()},
        }

    def restore(self, state: State) -> None:
        """Continue where `state` was taken, once all rows are loaded."""
        # Earlier versions saved the newest observations, and whole stacks, with the rows.
        state = {"newest": {}, "stacks": {name: {} for name in self._stacks}, **state}
        require(state, "capacity", "total", "tails", "newest", "stacks")
        if state["capacity"] != self.capacity:
            raise StateMismatch(
                f"The saved replay has capacity {state['capacity']}, this one {self.capacity}. "
                f"Resume with the capacity that was saved."
            )
        self.total = int(state["total"])
        self._open.restore(state["tails"])
        self._following.clear()
        if state["newest"]:
            self._following.keep(Final(self._open.ids, np.full(len(self._open.ids), OPEN), state["newest"]))
        for name, stack in self._stacks.items():
            stack.restore(state["stacks"].get(name, {}))
        self._missing = self.total - self.first

    @property
    def _names(self) -> list[str]:
        return [*self._observation, *self._stacks]

    def _observed(self, name: str, slots: Array) -> Array:
        """One array of the observations before the steps in these slots."""
        stack = self._stacks.get(name)
        return _take(self._observation[name], slots) if stack is None else stack.take(slots)

    def _followed(self, names: list[str], slots: Array) -> dict[str, Array]:
        """Arrays of the observations after the steps in these slots."""
        successor = self._following.successors(slots)
        found = {name: self._observed(name, successor % self.capacity) for name in names}
        rows = np.flatnonzero(successor < 0)
        if len(rows):
            for name, array in found.items():
                array[rows] = self._following.observation(name, successor[rows])
        return found

    def _windows(self, start: Array) -> tuple[Array, Array, Array]:
        """The last slot [B] and the length [B] of each window, and its rewards [B, n]."""
        stored = self._columns["reward"]
        reward = np.zeros((len(start), self._n_step), stored.dtype)
        reward[:, 0] = _take(stored, start)
        end, span = start, np.ones(len(start), np.int64)
        for step in range(1, self._n_step):
            # A window that has ended keeps its last slot, which has no successor.
            successor = self._following.successors(end)
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
        stacked = {OBSERVATION + name for name in self._stacks}
        self._columns = {
            name: self._storage.allocate((self.capacity, *array.shape[1:]), array.dtype)
            for name, array in rows.items()
            if name not in stacked
        }
        self._observation, self._extras = (_group(self._columns, prefix) for prefix in (OBSERVATION, EXTRAS))
        for stack in self._stacks.values():
            stack.allocate()

    def _make_room(self, steps: int) -> None:
        """Free what belongs to the steps that will be overwritten."""
        oldest = max(self.first, self.total + steps - self.capacity)
        ids = np.arange(self.first, min(oldest, self.total))
        if not len(ids):
            return
        successor = self._following.successors(ids % self.capacity)
        self._following.forget(ids)
        for stack in self._stacks.values():
            stack.make_room(ids, successor, is_kept=successor >= oldest)

    def _load_following(self, ids: Array, following: Arrays) -> None:
        """Keep the next observations of an earlier version where no successor is known to have them."""
        steps = self._following.unknown(ids[(ids >= self.first) & (ids < self.total)])
        is_open = np.isin(steps, self._open.ids)
        observation = {name: array[steps - ids[0]] for name, array in following.items()}
        self._following.keep(Final(steps, np.where(is_open, OPEN, steps), observation))

    def _require_complete(self) -> None:
        if self._missing != 0:
            raise StateMismatch(
                f"The replay was restored with {self.total - self.first} transitions, but {self._missing} "
                f"were not loaded (if negative: loaded twice). Call load_rows once for every saved chunk."
            )


def _group(columns: Mapping[str, Array], prefix: str) -> dict[str, Array]:
    return {name.removeprefix(prefix): column for name, column in columns.items() if name.startswith(prefix)}


def _take(column: Array, slots: Array) -> Array:
    # The fastest way in numpy: slots are never out of range, and "clip" skips that check.
    return column.take(slots, axis=0, mode="clip")
