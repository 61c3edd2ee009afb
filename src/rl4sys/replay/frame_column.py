"""Stacks of frames in a replay buffer, of which only the newest frame is stored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

import numpy as np

from rl4sys.experience import Array, ArraySpec
from rl4sys.replay.row_pool import RowPool
from rl4sys.replay.storage import Storage
from rl4sys.state import State, require

_OWNER, _AT, _OLDER = "step", "at", "older"
_REPEATED = -1
"""Instead of an earlier step: the frames before this one were equal to it, as where an episode begins."""


class FrameStack(NamedTuple):
    """An observation array that shows the newest frames side by side along its last axis, the oldest first."""

    spec: ArraySpec
    frames: int

    @property
    def frame(self) -> tuple[int, ...]:
        """The shape of one frame."""
        return (*self.spec.shape[:-1], self.spec.shape[-1] // self.frames)


Stacks: TypeAlias = Mapping[str, FrameStack]
"""The stacked arrays of an observation by name."""


def frame_stacks(observation: tuple[ArraySpec, ...], frames: Mapping[str, int]) -> Stacks:
    """The stacked arrays of an observation, by the number of their frames."""
    found = {}
    for spec in observation:
        count = frames.get(spec.name, 1)
        if count > 1:
            if not spec.shape or spec.shape[-1] % count:
                raise ValueError(f"{spec} cannot show {count} frames along its last axis: give their true number.")
            found[spec.name] = FrameStack(spec, count)
    return found


class FrameColumn:
    """The stacks [capacity, …, frames · channels] of one observation array, the oldest frame first.

    A stack is rebuilt from the frames of the steps that led to it. Where that gives another one, and where these steps
    are overwritten, its older frames are kept beside.
    """

    def __init__(self, capacity: int, stack: FrameStack, storage: Storage) -> None:
        self._capacity, self._stack = capacity, stack
        self._frames, self._channels = stack.frames, stack.frame[-1]
        self._storage = storage
        self._column: Array = np.zeros(0)
        # The id of the step before, _REPEATED, or −2 − the place of the older frames.
        self._before = np.full(capacity, _REPEATED, np.int64)
        self._older = RowPool(storage)

    def allocate(self) -> None:
        """Take the memory or disk space."""
        self._column = self._storage.allocate((self._capacity, *self._stack.frame), self._stack.spec.dtype)

    def take(self, slots: Array) -> Array:
        """Copies of the stacks in these slots."""
        width, last = self._channels, self._frames - 1
        stacks = np.empty((len(slots), *self._column.shape[1:-1], self._frames * width), self._column.dtype)
        stacks[..., last * width :] = self._column.take(slots, axis=0, mode="clip")
        before, kept = slots, np.zeros(len(slots), np.bool_)
        for number in range(last - 1, -1, -1):
            link = self._before.take(before, mode="clip")
            ends = (link <= _REPEATED - 1) & ~kept
            if ends.any():
                # The rest of the stack, from here to its oldest frame.
                older = self._older.take(_OLDER, -2 - link[ends])
                stacks[ends, ..., : (number + 1) * width] = older[..., (last - 1 - number) * width :]
                kept |= ends
            before = np.where(link >= 0, link % self._capacity, before)
            rest = np.flatnonzero(~kept)
            frame = self._column.take(before[rest], axis=0, mode="clip")
            if len(rest) == len(slots):
                stacks[..., number * width : (number + 1) * width] = frame
            else:
                stacks[rest, ..., number * width : (number + 1) * width] = frame
        return stacks

    def write(self, ids: Array, stacks: Array, previous: Array) -> None:
        """Store the stacks [N, …] of consecutive ids; `previous` [N] is the step before each, or −1.

        A step before the first of the ids must be held.
        """
        slots, width = ids % self._capacity, self._channels
        self._column[slots] = stacks[..., -width:]
        inside = previous >= ids[0]
        is_shifted = np.zeros(len(ids), np.bool_)
        rows = np.flatnonzero(inside)
        is_shifted[rows] = _equal(stacks[rows, ..., :-width], stacks[previous[rows] - ids[0], ..., width:])
        for row in np.flatnonzero(~inside & (previous >= 0)):
            earlier = self.take(previous[row : row + 1] % self._capacity)
            is_shifted[row] = _equal(stacks[row : row + 1, ..., :-width], earlier[..., width:])[0]
        self._before[slots] = np.where(is_shifted, previous, _REPEATED)
        others = np.flatnonzero(~is_shifted)
        is_repeated = _equal(stacks[others], np.tile(stacks[others, ..., -width:], self._frames))
        whole = others[~is_repeated]
        self._keep(ids[whole], stacks[whole, ..., :-width], at=ids[whole])

    def make_room(self, overwritten: Array, following: Array, is_kept: Array) -> None:
        """Prepare for overwriting steps [N]; where `is_kept` [N], the step that follows continues to be held."""
        chosen = is_kept & (self._before.take(following % self._capacity, mode="clip") == overwritten)
        if chosen.any():
            stacks = self.take(overwritten[chosen] % self._capacity)
            self._keep(following[chosen], stacks[..., self._channels :], at=np.full(int(chosen.sum()), -1))
        links = self._before[overwritten % self._capacity]
        self._older.release(-2 - links[links <= -2])

    def rows(self, ids: Array) -> Mapping[str, Array]:
        """The frames with these consecutive ids, and the older frames that must be kept for some of them."""
        found = {"": self._column[ids % self._capacity]}
        if not len(ids):
            return found
        places = self._older.between(_AT, int(ids[0]), int(ids[-1]) + 1, order=_OWNER)
        if len(places):
            found |= {"#" + name: self._older.take(name, places) for name in (_OWNER, _OLDER)}
        return found

    def load_rows(self, ids: Array, rows: Mapping[str, Array], previous: Array, oldest: int, total: int) -> None:
        """Load what `rows` returned, or whole stacks; ids that are not held are ignored."""
        held = (ids >= oldest) & (ids < total)
        saved = rows[""]
        if saved.shape[-1] != self._channels:
            # Whole stacks of a version that knew no frames; what came before the first of them may be loaded later.
            known = np.where(previous >= max(oldest, ids[0]), previous, -1)
            if held.any():
                self.write(ids[held], saved[held], known[held])
            return
        slots = ids[held] % self._capacity
        self._column[slots] = saved[held]
        linked = held & (previous >= oldest)
        self._before[ids[linked] % self._capacity] = previous[linked]
        if "#" + _OWNER in rows:
            owner = rows["#" + _OWNER]
            chosen = (owner >= oldest) & (owner < total)
            self._keep(owner[chosen], rows["#" + _OLDER][chosen], at=owner[chosen])

    def state(self) -> State:
        """The older frames that are kept because steps were overwritten."""
        places = self._older.between(_AT, -1, 0, order=_OWNER)
        return {name: self._older.take(name, places) for name in (_OWNER, _OLDER)} if len(places) else {}

    def restore(self, state: State) -> None:
        """Start again from a saved state; `load_rows` must follow."""
        self._older.clear()
        self._before.fill(_REPEATED)
        if state:
            require(state, _OWNER, _OLDER)
            self._keep(state[_OWNER], state[_OLDER], at=np.full(len(state[_OWNER]), -1))

    def _keep(self, ids: Array, older: Array, at: Array) -> None:
        if len(ids):
            places = self._older.put({_OWNER: ids, _AT: at, _OLDER: older})
            self._before[ids % self._capacity] = -2 - places


def _equal(one: Array, other: Array) -> Array:
    """Whether the rows [N, …] are equal: [N]."""
    equal: Array = (one == other).all(axis=tuple(range(1, one.ndim)))
    return equal
