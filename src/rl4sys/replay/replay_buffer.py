"""What replay buffers have in common: columns, a pace, and chance. How a batch is drawn is up to each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping

import numpy as np

from rl4sys.experience import Array, Segment, Transitions
from rl4sys.replay.columns import Columns
from rl4sys.replay.pace import Ratio, UpdateCredit
from rl4sys.replay.storage import Storage
from rl4sys.state import State, generator_state, require, restore_generator


class ReplayBuffer(ABC):
    """Keeps the newest transitions, and has batches due at a fixed ratio to the steps that came in."""

    def __init__(self, columns: Columns, pace: Ratio, rng: np.random.Generator) -> None:
        self._columns = columns
        self._credit = UpdateCredit(pace)
        self._batch_size = pace.batch_size
        self._rng = rng

    def add(self, segment: Segment, age: int = 0) -> None:
        """Take in a segment, however old: off-policy algorithms learn from any policy's steps."""
        self._append(segment)
        self._credit.earn(segment.steps, self.total)

    def due(self) -> Iterator[Transitions]:
        """As many batches as the steps so far have earned; each is drawn when it is asked for."""
        while self._credit.spend():
            yield self._draw()

    def annotate(self, ids: Array, feedback: Mapping[str, Array]) -> None:  # noqa: B027  # nothing is a good answer
        """Nothing to note, where no transition is preferred."""

    @property
    def counts(self) -> Mapping[str, int]:
        """Steps taken in (`added`), and how many of them gave way to newer ones (`overwritten`)."""
        return {"added": self.total, "overwritten": self.first}

    @property
    def first(self) -> int:
        """The id of the oldest transition that is held."""
        return self._columns.first

    @property
    def total(self) -> int:
        """One past the id of the newest transition: the number of steps ever added."""
        return self._columns.total

    def rows(self, first: int, last: int) -> Mapping[str, Array]:
        """Copies of the transitions with ids [first, last), to be saved; they never change afterwards."""
        return self._columns.rows(first, last)

    def load_rows(self, first: int, rows: Mapping[str, Array]) -> None:
        """Take back, after `restore`, what `rows` returned."""
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
        """Go on exactly where `state` was taken, once the rows are loaded too."""
        require(state, "columns", "credit", "rng", *self._own_state())
        self._columns.restore(state["columns"])
        self._credit.restore(state["credit"])
        restore_generator(self._rng, state["rng"])
        self._restore_own(state)

    def _append(self, segment: Segment) -> None:
        """Put a segment where draws will find it."""
        self._columns.append(segment)

    @abstractmethod
    def _draw(self) -> Transitions:
        """One batch."""

    def _own_state(self) -> State:
        """What else later batches depend on, by names of its own."""
        return {}

    def _restore_own(self, state: State) -> None:  # noqa: B027  # nothing is a good answer
        """Take back what `_own_state` said, when columns and chance are back."""


class UniformBuffer(ReplayBuffer):
    """Draws every transition with equal probability, with replacement."""

    def __init__(
        self, capacity: int, pace: Ratio, rng: np.random.Generator, n_step: int = 1, storage: Storage | None = None
    ) -> None:
        super().__init__(Columns(capacity, n_step, storage), pace, rng)

    def _draw(self) -> Transitions:
        ids = self._rng.integers(self.first, self.total, self._batch_size)
        return self._columns.batch(ids, weight=np.ones(self._batch_size, np.float32))
