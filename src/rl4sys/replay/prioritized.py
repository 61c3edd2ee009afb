"""Prioritized replay: transitions with a large error are drawn more often (arXiv:1511.05952)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from rl4sys.experience import Array, Segment, Transitions
from rl4sys.replay.columns import Columns
from rl4sys.replay.frame_column import Stacks
from rl4sys.replay.pace import Ratio
from rl4sys.replay.replay_buffer import ReplayBuffer
from rl4sys.replay.storage import Storage
from rl4sys.replay.sum_tree import SumTree
from rl4sys.state import State


@dataclass(frozen=True, slots=True)
class Priorities:
    """How strongly errors decide which transitions are drawn, and how far the resulting bias is corrected."""

    alpha: float = 0.6
    """0 draws uniformly; 1 draws in proportion to the error."""
    beta: float = 0.4
    """Strength of the importance weights at the start; 1 corrects the bias fully."""
    beta_steps: int = 1_000_000
    """Added steps over which `beta` rises to 1."""
    epsilon: float = 1e-6
    """Added to every error: a larger one draws transitions without error more often."""

    def __post_init__(self) -> None:
        if self.alpha < 0 or not 0 <= self.beta <= 1 or self.beta_steps < 1 or self.epsilon <= 0:
            raise ValueError(f"{self}: choose alpha ≥ 0, beta in [0, 1], beta_steps ≥ 1 and epsilon > 0.")

    def of(self, error: Array) -> Array:
        """(|error| + ε)^α: transitions are drawn in proportion to it (sec. 3.3)."""
        return (np.abs(error, dtype=np.float64) + self.epsilon) ** self.alpha

    def beta_after(self, steps: int) -> float:
        """Beta after this many steps."""
        return self.beta + (1.0 - self.beta) * min(1.0, steps / self.beta_steps)


class PrioritizedBuffer(ReplayBuffer[Transitions]):
    """Keeps the newest `capacity` transitions and draws them in proportion to their priorities.

    Draws are stratified: one from each of `batch_size` equal shares of the sum of priorities. New transitions get
    the highest priority so far, so that each is likely to be drawn soon.
    """

    def __init__(
        self,
        capacity: int,
        pace: Ratio,
        rng: np.random.Generator,
        priorities: Priorities | None = None,
        n_step: int = 1,
        storage: Storage | None = None,
        stacks: Stacks | None = None,
    ) -> None:
        super().__init__(Columns(capacity, n_step, storage, stacks), pace, rng)
        self._tree = SumTree(capacity)
        self._priorities = priorities or Priorities()
        self._highest = 1.0

    def annotate(self, ids: Array, feedback: Mapping[str, Array]) -> None:
        """Set new priorities from the errors [B] in `priority`; rows that were overwritten since are ignored."""
        if "priority" not in feedback:
            raise ValueError(
                f"Prioritized replay needs the feedback 'priority' (the error of each transition), but the "
                f"algorithm returned {sorted(feedback)}. Set buffer.type=uniform for this algorithm."
            )
        held = ids >= self.first
        priority = self._priorities.of(feedback["priority"][held])
        if not np.isfinite(priority).all():
            raise ValueError(
                "The feedback 'priority' contains NaN or infinity: the algorithm has diverged. "
                "Restore an earlier checkpoint and lower the learning rate."
            )
        self._tree.put(ids[held] % self._columns.capacity, priority)
        self._highest = max(self._highest, priority.max(initial=0.0).item())

    def _append(self, segment: Segment) -> None:
        start = self.total
        self._columns.append(segment)
        for _, slots in self._columns.slot_ranges(start, self.total):
            self._tree.fill(slots, self._highest)

    def _draw(self) -> Transitions:
        shares = (np.arange(self._batch_size) + self._rng.random(self._batch_size)) / self._batch_size
        slots = self._tree.find(shares)
        priority = self._tree.values(slots)
        # w = (N·P)^-β / max w (sec. 3.4), with the maximum of this batch; N and the sum of priorities cancel.
        weight = (priority.min() / priority) ** self._priorities.beta_after(self.total)
        return self._columns.batch(self._columns.ids_in(slots), weight.astype(np.float32))

    def _own_state(self) -> State:
        """`leaves` are the priorities of the transitions held, oldest first."""
        ranges = self._columns.slot_ranges(self.first, self.total)
        leaves = np.concatenate([np.zeros(0), *(self._tree.values(slots) for _, slots in ranges)])
        return {"leaves": leaves, "highest": self._highest}

    def _restore_own(self, state: State) -> None:
        self._tree = SumTree(self._columns.capacity)
        for part, slots in self._columns.slot_ranges(self.first, self.total):
            self._tree.fill(slots, state["leaves"][part])
        self._highest = float(state["highest"])
