"""How reaching a goal is rewarded, as a function that can be asked about any goal afterwards."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from rl4sys.experience import Array

ACHIEVED, DESIRED = "achieved_goal", "desired_goal"
"""The observation arrays that environments with goals show."""


class GoalReward(Protocol):
    """Judges what was achieved [B, …] by what is desired [B, …]."""

    def reward(self, achieved: Array, desired: Array) -> Array:
        """The rewards [B]."""

    def ends(self, achieved: Array, desired: Array) -> Array | None:
        """Whether reaching the goal ends the episode there [B]; None where it never does."""


class DistanceReward(NamedTuple):
    """0 within `threshold` of the goal and −1 further away, by the Euclidean distance."""

    threshold: float
    terminates: bool = False
    """Whether the episode ends where the goal is reached."""

    def reward(self, achieved: Array, desired: Array) -> Array:
        """−1 or 0 [B]."""
        return np.subtract(self._is_near(achieved, desired), 1.0, dtype=np.float32)

    def ends(self, achieved: Array, desired: Array) -> Array | None:
        """Where the goal is reached, if that ends an episode."""
        return self._is_near(achieved, desired) if self.terminates else None

    def _is_near(self, achieved: Array, desired: Array) -> Array:
        apart = (achieved - desired).reshape(len(achieved), -1)
        near: Array = np.einsum("ij,ij->i", apart, apart) <= np.float32(self.threshold) ** 2
        return near
