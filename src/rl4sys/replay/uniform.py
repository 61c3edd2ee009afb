"""Replay in which every transition is as likely as any other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from rl4sys.experience import Array, Segment, Transitions
from rl4sys.replay.columns import Columns
from rl4sys.replay.pace import Ratio, UpdateCredit
from rl4sys.state import State, generator_state, require, restore_generator


class UniformBuffer:
    """Keeps the newest `capacity` transitions and draws batches from them, with replacement."""

    def __init__(self, capacity: int, pace: Ratio, rng: np.random.Generator, n_step: int = 1) -> None:
        self._columns = Columns(capacity, n_step)
        self._credit = UpdateCredit(pace)
        self._batch_size = pace.batch_size
        self._rng = rng

    def add(self, segment: Segment, age: int = 0) -> None:
        """Take in a segment, however old: off-policy algorithms learn from any policy's steps."""
        self._columns.append(segment)
        self._credit.earn(segment.steps, self.total)

    def due(self) -> Iterator[Transitions]:
        """As many batches as the steps so far have earned; each is drawn when it is asked for."""
        while self._credit.spend():
            yield self._draw()

    def annotate(self, ids: Array, feedback: Mapping[str, Array]) -> None:
        """Nothing to note: no transition is preferred."""

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
        }

    def restore(self, state: State) -> None:
        """Go on exactly where `state` was taken, once the rows are loaded too."""
        require(state, "columns", "credit", "rng")
        self._columns.restore(state["columns"])
        self._credit.restore(state["credit"])
        restore_generator(self._rng, state["rng"])

    def _draw(self) -> Transitions:
        ids = self._rng.integers(self.first, self.total, self._batch_size)
        return self._columns.batch(ids, weight=np.ones(self._batch_size, np.float32))
