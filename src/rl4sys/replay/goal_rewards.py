"""Rewards as a function of the goal, so that they can be computed for any goal afterwards."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from rl4sys.experience import Array

ACHIEVED, DESIRED = "achieved_goal", "desired_goal"
"""The observation arrays of goal-conditioned environments, as Gymnasium-Robotics names them."""


class GoalReward(Protocol):
    """Rewards the achieved goals [B, …] with respect to the desired goals [B, …]."""

    def reward(self, achieved: Array, desired: Array) -> Array:
        """The rewards [B]."""

    def ends(self, achieved: Array, desired: Array) -> Array | None:
        """Whether reaching the goal terminates the episode [B]; None if it never does."""


class DistanceReward(NamedTuple):
    """0 within the Euclidean distance `threshold` of the goal and −1 elsewhere."""

    threshold: float
    terminates: bool = False
    """Whether reaching the goal terminates the episode."""

    def reward(self, achieved: Array, desired: Array) -> Array:
        """−1 or 0 [B]."""
        return np.subtract(self._is_near(achieved, desired), 1.0, dtype=np.float32)

    def ends(self, achieved: Array, desired: Array) -> Array | None:
        """Whether the goal is reached [B], if that terminates an episode."""
        return self._is_near(achieved, desired) if self.terminates else None

    def _is_near(self, achieved: Array, desired: Array) -> Array:
        difference = (achieved - desired).reshape(len(achieved), -1)
        near: Array = np.einsum("ij,ij->i", difference, difference) <= np.float32(self.threshold) ** 2
        return near
