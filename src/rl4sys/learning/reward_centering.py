"""Centred rewards for tasks without end: the mean reward is subtracted (Naik et al., 2024, arXiv:2405.09999)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rl4sys.experience import Segment, Sequences, Transitions
from rl4sys.state import State, require

WINDOW = 10_000
"""Decisions that the running mean covers: it is the mean of all until then, and forgets slowly afterwards."""


class RewardCentering:
    """Subtracts the running mean of the rewards of decisions, so that values need not carry what all states share."""

    def __init__(self) -> None:
        self.mean = 0.0
        self._count = 0

    def observe(self, segments: Sequence[Segment]) -> None:
        """Update the mean, in the order of the segments."""
        for segment in segments:
            self._count += segment.steps
            share = min(1.0, segment.steps / min(self._count, WINDOW))
            self.mean += share * (float(segment.reward.mean(dtype=np.float64)) - self.mean)

    def centered(self, batch: Any) -> Any:
        """The same batch with the present mean taken off the reward of every decision."""
        assert isinstance(batch, Transitions | Sequences)
        mean = np.float32(self.mean)
        if isinstance(batch, Sequences):
            return replace(batch, reward=np.where(batch.acted, batch.reward - mean, batch.reward))
        if batch.reward.ndim == 1:
            return replace(batch, reward=batch.reward - mean)
        exists = np.arange(batch.reward.shape[1]) < batch.span[:, None]
        return replace(batch, reward=np.where(exists, batch.reward - mean, batch.reward))

    def state(self) -> State:
        """The mean, and how many rewards it has seen."""
        return {"mean": self.mean, "count": self._count}

    def restore(self, state: State) -> None:
        """Continue from a saved state."""
        require(state, "mean", "count")
        self.mean, self._count = float(state["mean"]), int(state["count"])
