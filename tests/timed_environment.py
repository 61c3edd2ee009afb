"""An environment in whose steps different times pass."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from rl4sys.experience import Array

TIMED = "timed_environment:TimedCounter"


class TimedCounter(gymnasium.Env[Array, int]):
    """Counts to twenty, in forty steps: counting on takes a second, waiting three. With `broken`, time goes back."""

    def __init__(self, *, broken: bool = False) -> None:
        self.observation_space = spaces.Box(0.0, 1.0, (1,), np.float32)
        self.action_space = spaces.Discrete(2)
        self._broken = broken

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        """Begin at a random time."""
        super().reset(seed=seed)
        self._count, self._steps, self._now = 0, 0, float(self.np_random.uniform(0.0, 1000.0))
        return self._seen(), {"now": self._now}

    def step(self, action: int) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        """Count on, or wait."""
        self._count += int(action)
        self._now += (-1.0 if self._broken else 1.0) if action else 3.0
        self._steps += 1
        return self._seen(), float(action), self._count == 20, self._steps == 40, {"now": self._now}

    def _seen(self) -> Array:
        return np.array([self._count / 20], np.float32)
