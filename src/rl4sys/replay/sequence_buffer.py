"""Replay of sequences: for algorithms whose networks have memory, and for models of the world."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from rl4sys.experience import Array, Ending, Segment, Sequences
from rl4sys.replay.columns import Columns
from rl4sys.replay.frame_column import Stacks
from rl4sys.replay.pace import Ratio
from rl4sys.replay.replay_buffer import ReplayBuffer
from rl4sys.replay.saved_rows import EXTRAS
from rl4sys.replay.storage import Storage
from rl4sys.replay.stream_order import IS_FIRST, PREVIOUS, StreamOrder
from rl4sys.state import State

_TRIES = 8
"""Rounds of drawing among all steps, before the steps from which a sequence can be read are listed."""


class SequenceBuffer(ReplayBuffer[Sequences]):
    """Keeps the newest `capacity` steps and draws sequences of `length` rows of one stream, in order.

    A sequence starts at any step from which its stream holds `length` rows, each equally likely. It crosses episodes:
    where one ends, a row that is not acted has its final observation, and the next episode follows with `is_first`.
    So does what follows where steps of the stream are missing. `carry` and `streams` are empty, and `age` is 0.

    Nothing is due before a sequence can be drawn: until then the warm-up lasts longer than the pace says.
    """

    def __init__(
        self,
        capacity: int,
        pace: Ratio,
        rng: np.random.Generator,
        length: int,
        storage: Storage | None = None,
        stacks: Stacks | None = None,
    ) -> None:
        super().__init__(Columns(capacity, storage=storage, stacks=stacks), pace, rng)
        self._order = StreamOrder(capacity, length)
        self._is_indexed = True

    def add(self, segment: Segment, age: int = 0) -> None:
        """Add a segment of any age."""
        self._append(segment)
        if self._order.starts:
            self._credit.earn(segment.steps, self.total)

    def rows(self, first: int, last: int) -> Mapping[str, Array]:
        """Copies of the steps with ids [first, last), to be saved; these rows never change afterwards."""
        return {**self._columns.rows(first, last), **self._order.rows(first, last, self.first)}

    def load_rows(self, first: int, rows: Mapping[str, Array]) -> None:
        """Load what `rows` returned, after `restore`."""
        own = {PREVIOUS: rows[PREVIOUS], IS_FIRST: rows[IS_FIRST]}
        self._columns.load_rows(first, {name: array for name, array in rows.items() if name not in own})
        self._order.load_rows(first, own, self.first, self.total)

    def _can_draw(self) -> bool:
        self._index()
        return self._order.starts > 0

    def _append(self, segment: Segment) -> None:
        self._index()
        start, oldest = self.total, self.first
        continues = self._columns.append(segment)
        self._order.make_room(oldest, min(self.first, start))
        is_over = segment.ending is not Ending.CONTINUES
        ids = range(start, self.total)
        self._order.add(segment.stream, ids, self.first, continues=continues, is_over=is_over)

    def _draw(self) -> Sequences:
        ids, is_final = self._order.sequences(self._starts())
        shape, flat, acted = ids.shape, ids.ravel(), ~is_final
        observation = self._columns.observations(flat, is_final.ravel())
        steps = {name: _blank(array, is_final.ravel()) for name, array in self._columns.steps(flat).items()}
        steps["discount"][is_final.ravel()] = 1.0
        return Sequences(
            observation={name: _split(array, shape) for name, array in observation.items()},
            action=_split(steps["action"], shape),
            reward=_split(steps["reward"], shape),
            discount=_split(steps["discount"], shape),
            acted=acted,
            is_first=_split(self._order.is_first(flat), shape) & acted,
            age=np.zeros(shape, np.int32),
            extras={
                name.removeprefix(EXTRAS): _split(array, shape)
                for name, array in steps.items()
                if name.startswith(EXTRAS)
            },
            carry={},
            streams=(),
        )

    def _starts(self) -> Array:
        """The first steps [B] of the sequences of a batch."""
        found = np.zeros(0, np.int64)
        for _ in range(_TRIES):
            ids = self._rng.integers(self.first, self.total, self._batch_size - len(found))
            found = np.concatenate([found, ids[self._order.are_starts(ids)]])
            if len(found) == self._batch_size:
                return found
        starts = self._order.all_starts(self.first, self.total)
        rest = self._rng.integers(0, len(starts), self._batch_size - len(found))
        return np.concatenate([found, starts[rest]])

    def _index(self) -> None:
        """Find what can be drawn from the rows loaded after `restore`; deferred until all of them are there."""
        if not self._is_indexed:
            self._order.rebuild(*self._columns.successors(), self.first)
            self._is_indexed = True

    def _own_state(self) -> State:
        return {"order": self._order.state()}

    def _restore_own(self, state: State) -> None:
        self._order.restore(state["order"])
        self._is_indexed = False


def _split(array: Array, shape: tuple[int, ...]) -> Array:
    """[B · L, …] as [B, L, …]."""
    return array.reshape(*shape, *array.shape[1:])


def _blank(array: Array, rows: Array) -> Array:
    """Zeros where nothing was done: these rows belong to the step before them."""
    array[rows] = 0
    return array
