"""Replay buffers: what all of them share, and the uniform one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Generic, TypeVar

import numpy as np

from rl4sys.experience import Array, Segment, SegmentPack, Sequences, Transitions
from rl4sys.replay.columns import Columns
from rl4sys.replay.frame_column import Stacks
from rl4sys.replay.pace import Ratio, UpdateCredit
from rl4sys.replay.storage import Storage
from rl4sys.state import State, generator_state, require, restore_generator

Batch = TypeVar("Batch", Transitions, Sequences)


class ReplayBuffer(ABC, Generic[Batch]):
    """Keeps the newest steps and yields batches at a fixed ratio to the steps added.

    Subclasses define how a batch is drawn.
    """

    def __init__(self, columns: Columns, pace: Ratio, rng: np.random.Generator) -> None:
        self._columns = columns
        self._credit = UpdateCredit(pace)
        self._batch_size = pace.batch_size
        self._rng = rng

    def add(self, segment: Segment, age: int = 0) -> None:
        """Add a segment of any age: off-policy algorithms learn from the steps of any policy."""
        self._append(segment)
        self._credit.earn(segment.steps, self.total)

    def due(self) -> Iterator[Batch]:
        """The batches that are due for the steps so far; each is drawn when it is requested."""
        while self._can_draw() and self._credit.spend():
            yield self._draw()

    def annotate(self, ids: Array, feedback: Mapping[str, Array]) -> None:
        """Ignored, unless the draw depends on the feedback."""

    @property
    def counts(self) -> Mapping[str, int]:
        """Steps added (`added`), and how many of them were replaced by newer ones (`overwritten`)."""
        return {"added": self.total, "overwritten": self.first}

    @property
    def first(self) -> int:
        """The id of the oldest transition that is still held."""
        return self._columns.first

    @property
    def total(self) -> int:
        """One more than the id of the newest transition: the number of steps ever added."""
        return self._columns.total

    def rows(self, first: int, last: int) -> Mapping[str, Array]:
        """Copies of the transitions with ids [first, last), to be saved; these rows never change afterwards."""
        return self._columns.rows(first, last)

    def load_rows(self, first: int, rows: Mapping[str, Array]) -> None:
        """Load what `rows` returned, after `restore`."""
        self._columns.load_rows(first, rows)

    def state(self) -> State:
        """Everything but the rows."""
        return {
            "columns": self._columns.state(),
            "credit": self._credit.state(),
            "rng": generator_state(self._rng),
            **self._own_state(),
        }

    def restore(self, state: State) -> None:
        """Continue exactly where `state` was taken, once all rows are loaded."""
        require(state, "columns", "credit", "rng", *self._own_state())
        self._columns.restore(state["columns"])
        self._credit.restore(state["credit"])
        restore_generator(self._rng, state["rng"])
        self._restore_own(state)

    def _append(self, segment: Segment) -> None:
        """Store a segment for later draws."""
        self._columns.append(segment)

    def _can_draw(self) -> bool:
        """Whether a batch can be drawn; if not, the updates that are due wait."""
        return True

    @abstractmethod
    def _draw(self) -> Batch:
        """Draw one batch."""

    def _own_state(self) -> State:
        """Further state that later batches depend on; its keys must differ from those of `state`."""
        return {}

    def _restore_own(self, state: State) -> None:
        """Restore what `_own_state` returned, after columns and random generator."""


class UniformBuffer(ReplayBuffer[Transitions]):
    """Draws every transition with equal probability, with replacement."""

    def __init__(
        self,
        capacity: int,
        pace: Ratio,
        rng: np.random.Generator,
        n_step: int = 1,
        storage: Storage | None = None,
        stacks: Stacks | None = None,
    ) -> None:
        super().__init__(Columns(capacity, n_step, storage, stacks), pace, rng)

    def absorb(self, pack: SegmentPack, age: int = 0) -> int:
        """Add the first segments of a pack of whole episodes, as many as make no update due; returns how many."""
        if type(self) is not UniformBuffer or not self._columns.can_append_pack(pack):
            # What extends this buffer sees every segment.
            return 0
        count = self._credit.affords(pack.steps, self.total)
        if count:
            taken = pack.part(0, count)
            self._columns.append_pack(taken)
            self._credit.earn(len(taken.reward), self.total)
        return count

    def _draw(self) -> Transitions:
        ids = self._rng.integers(self.first, self.total, self._batch_size)
        return self._columns.batch(ids, weight=np.ones(self._batch_size, np.float32))
