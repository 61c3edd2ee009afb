"""A tiny environment whose actions are candidates, with a known answer; rl4sys/CandidateChoice-v0."""

from __future__ import annotations

from typing import Any, TypeAlias

import gymnasium
import numpy as np
from gymnasium import spaces

from rl4sys.experience import Array

Observation: TypeAlias = dict[str, Array]


class CandidateChoice(gymnasium.Env[Observation, Any]):
    """Shows 1 to `most` candidates; the reward is 1 for the one whose first feature fits the context best.

    With a context of 1 that is the highest one, with −1 the lowest.
    """

    def __init__(self, most: int = 8, features: int = 3, length: int = 16) -> None:
        self._most, self._features, self._length = most, features, length
        self.action_space = spaces.Discrete(most)
        row = spaces.Box(-1.0, 1.0, (features,), np.float32)
        self.observation_space: spaces.Space[Any] = spaces.Dict(
            {"candidates": spaces.Sequence(row, stack=True), "context": spaces.Box(-1.0, 1.0, (1,), np.float32)}
        )

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin an episode."""
        super().reset(seed=seed)
        self._step = 0
        return self._next(), {}

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Choose a candidate."""
        if not 0 <= action < len(self._rows):
            raise ValueError(f"Action {action} is no candidate; there are {len(self._rows)}.")
        fit = self._rows[:, 0] * self._sign
        self._step += 1
        return self._next(), float(fit[action] == fit.max()), self._step == self._length, False, {}

    def _next(self) -> Observation:
        count = int(self.np_random.integers(1, self._most + 1))
        self._rows = self.np_random.uniform(-1.0, 1.0, (count, self._features)).astype(np.float32)
        self._sign = float(self.np_random.choice((-1.0, 1.0)))
        return {"candidates": self._rows, "context": np.array([self._sign], np.float32)}
