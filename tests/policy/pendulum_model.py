"""The true dynamics of Pendulum-v1, for as many rows as a planner has candidates."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rl4sys.experience import Array


class PendulumModel:
    """What Gymnasium's Pendulum-v1 does, with actions scaled to [−1, 1]. Its state is angle and angular velocity."""

    def __init__(self, rows: int) -> None:
        self.action = np.zeros((rows, 1), np.float32)
        self.reward = np.zeros(rows, np.float32)
        self._angle, self._velocity = np.zeros(rows, np.float32), np.zeros(rows, np.float32)

    def start(self, state: Sequence[Array]) -> None:
        self._angle[:], self._velocity[:] = state[0]

    def step(self, generator: np.random.Generator) -> None:
        torque = 2.0 * self.action[:, 0]
        upright = (self._angle + np.pi) % (2.0 * np.pi) - np.pi
        self.reward[:] = -(upright**2 + 0.1 * self._velocity**2 + 0.001 * torque**2)
        velocity = self._velocity + (15.0 * np.sin(self._angle) + 3.0 * torque) * 0.05
        self._velocity = np.clip(velocity, -8.0, 8.0)
        self._angle = self._angle + self._velocity * 0.05
