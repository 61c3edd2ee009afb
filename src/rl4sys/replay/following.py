"""What followed each step of a replay buffer: another step, or an observation that no step holds."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rl4sys.experience import Array, Arrays
from rl4sys.replay.row_pool import RowPool
from rl4sys.replay.storage import Storage

_UNKNOWN = np.iinfo(np.int64).min
"""In place of a successor: the rows that tell are not loaded yet."""
_STEP, _SINCE = "#step", "#since"
OPEN = -1
"""Instead of the step since which an observation is final: the episode may still continue."""


class Final(NamedTuple):
    """Observations that followed steps without a successor."""

    of: Array
    """[N]: the steps."""
    since: Array
    """[N]: the id with which it became known that there is no successor, or `OPEN`."""
    observation: Arrays


class Following:
    """The successor of every step of a ring of steps, or else the observation that followed it."""

    def __init__(self, capacity: int, storage: Storage) -> None:
        self._capacity = capacity
        # The id of the next step of the episode, or −1 − the place of the observation that followed.
        self._successor = np.full(capacity, _UNKNOWN, np.int64)
        self._kept = RowPool(storage)

    def successors(self, slots: Array) -> Array:
        """The ids of the successors of the steps in these slots; less than 0 where there is none."""
        return self._successor.take(slots, mode="clip")

    def predecessors(self, first: int, last: int) -> tuple[Array, Array]:
        """The slots of the steps whose successors are in [first, last), and these successors."""
        slots = np.flatnonzero((self._successor >= first) & (self._successor < last))
        return slots, self._successor[slots]

    def link(self, ids: Array, successors: Array) -> None:
        """Set the successors of these steps; the observations kept for them are not needed any more."""
        slots = ids % self._capacity
        self._release(self._successor[slots])
        self._successor[slots] = successors

    def link_new(self, ids: Array) -> None:
        """Link steps in slots that were free to the ids after them."""
        self._successor[ids % self._capacity] = ids + 1

    def keep(self, final: Final) -> None:
        """Keep the observations that followed these steps."""
        if len(final.of):
            places = self._kept.put({_STEP: final.of, _SINCE: final.since, **final.observation})
            self.link(final.of, -1 - places)

    def close(self, step: int, since: int) -> None:
        """Note that a step will have no successor."""
        self._kept.set(_SINCE, -1 - int(self._successor[step % self._capacity]), since)

    def forget(self, ids: Array) -> None:
        """Free what is kept for steps that will be overwritten."""
        self._release(self._successor[ids % self._capacity])

    def observation(self, name: str, successors: Array) -> Array:
        """One array of the observations kept instead of these successors, all less than 0."""
        return self._kept.take(name, -1 - successors)

    def kept(self, ids: Array) -> Arrays:
        """The observations that are kept for these steps."""
        return self._taken(-1 - self._successor[ids % self._capacity]).observation

    def closed(self, first: int, last: int) -> Final:
        """The observations of which it became known with one of the ids [first, last) that they are final."""
        return self._taken(self._kept.between(_SINCE, first, last, order=_STEP))

    def unknown(self, ids: Array) -> Array:
        """Those of these steps for which nothing was loaded yet."""
        unknown: Array = ids[self._successor[ids % self._capacity] == _UNKNOWN]
        return unknown

    def clear(self) -> None:
        """Forget everything."""
        self._successor.fill(_UNKNOWN)
        self._kept.clear()

    def _taken(self, places: Array) -> Final:
        if not len(places):
            return Final(places, places, {})
        names = [name for name in self._kept.names() if name not in (_STEP, _SINCE)]
        observation = {name: self._kept.take(name, places) for name in names}
        return Final(self._kept.take(_STEP, places), self._kept.take(_SINCE, places), observation)

    def _release(self, successors: Array) -> None:
        self._kept.release(-1 - successors[(successors < 0) & (successors != _UNKNOWN)])
